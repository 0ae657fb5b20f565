"""What is made of staged records: the replay (`offsets`), and counts for questions, each with a merge for threads.

A fold is four things: a kernel with the loop of `overview.scan`, which notes what was staged once `flush` has
replayed it; a `ColumnarState` with arrays of its own and a `merge`, which takes ``numbers = self.number(right)``,
joins its arrays by ``numbers[0]`` (rows), ``[1]`` (groups) or ``[2]`` (producers), then calls ``self.join(right,
numbers)``; a `Piece` whose `scan_on` calls the kernel and whose `counted` notes what was read on the slow path; a
`Replay` that names both. A kernel comes back with NEEDS_ROOM before `flush` if its arrays lack room. `surveys` is a
small one to copy; `tests/columnar/test_modes.py` names its test.

Of a key of the newer kinds of groups only the last record is replayed where `newer` is sure that the others cannot
matter; a group of which it is not sure is read again with all its records. A new rule in `replay.groups` must be
asked about there.
"""
