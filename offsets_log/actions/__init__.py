"""One module an action: what gives offsets back, rewrites logs, copies, follows or serves them, asked by a session.

An action may write new files and folders, ask a live cluster, or go on until it is told to end; inputs are never
written. What is remarkable goes to the session's `Listener`; an action never prints and reads no options. What a
caller may ask for is a dataclass beside it.
"""
