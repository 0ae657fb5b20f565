"""What is made of staged records: the replay (`offsets`), and counts for questions, each with a merge for threads.

What is counted of records needs no fold: it is a sum over a ledger, which `offsets.scan` writes of what it has replayed
(`ledgers`; `investigate.survey_counts` is a small one to copy). A fold that must do more is four things: a kernel with
the loop of `overview.scan`, which notes what was staged once `flush` has replayed it; a `ColumnarState` with arrays of
its own, and a `merge` where logs are cut; a `Piece` whose `scan_on` calls the kernel and whose `counted` notes what was
read on the slow path; a `Replay` that names both. A kernel comes back with NEEDS_ROOM before `flush` if its arrays lack
room. `tests/columnar/test_modes.py` names its test.

Of a key of the newer kinds of groups only the last record is replayed where `newer` is sure that the others cannot
matter; a group of which it is not sure is read again with all its records. A new rule in `replay.groups` must be
asked about there.
"""
