"""Give offsets back: a lossless plan of them, files for other tools, or commits to a live cluster.

`rescue` makes the plan, `doubts` and `doubtful` say what may be wrong with it; `tools` has a row for each tool that
files are written for. `judging` looks at the cluster before anything is touched, `apply` sets offsets and `journal`
remembers, so that a run can be continued or undone. Only `apply` and `undo` change a cluster, and only when they are
told to.
"""
