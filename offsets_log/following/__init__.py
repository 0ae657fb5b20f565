"""Keep what a log says current while it grows: `growth` what is new in it, `keeping` the state it leads to.

`offsets`, `groups`, `commits` and `generations` say what changed, `alerts` what somebody should look at.
"""
