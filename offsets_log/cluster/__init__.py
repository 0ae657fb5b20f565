"""Live clusters: clients that read and set, and the sockets of one that answers.

`reader` and `broker` only read, for `pull`; `admin` sets offsets, for `restore`; `server` is the other side, for
`serve`.
"""
