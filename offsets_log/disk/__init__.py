"""Find, choose and open the files of offsets partitions, wherever a user has them.

Directories, single segments, archives, stores and dumps become folders of named contents (`folder`); `finder` says
which of them hold segments, `replicas` which of several copies of a partition is read, `segments` how a partition's
files fit together. `reader` is the only way into the files. Inputs are never written; outputs appear whole or not at
all (`writer`).
"""
