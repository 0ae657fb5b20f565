"""An opened copy while it is asked: its logs and bounds, the account of what is wrong with them, the engine that reads.

It knows whose rules an answer follows, which offsets partition answers for a group, and what a broker would make of the
files. It never writes, and never speaks to a terminal: what is remarkable goes to a `Listener`. Its main types are
`Scope` (what is to be read), `Inputs`, `Account`, `Engine` and `Session`, which holds the three.
"""
