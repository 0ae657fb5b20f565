"""What a coordinator makes of a partition's records, rule by rule.

`partial` has the rules of offsets and transactions, and how two neighbouring runs of records join; `groups` those of
groups, a branch for each record type; `refusal` what ends a load; `profile` in what releases differ.
`coordinator_state` is the end: what is served, what is pending, and what no client gets. Nothing here knows files or
bytes. What surprises:

* Markers are matched to data by producer id alone: with transactions of version 2 the marker's epoch is one higher.
* An offset of an open, aborted or cancelled transaction makes its group exist; that decides which offsets are served.
* Where a text does not tell whether a commit took effect, it is one of `UNTOLD_PRODUCER_ID`'s transaction, which
  nothing ends: every replay holds it back, and `CoordinatorState.untold` has the keys whose answer depends on it.

A rule that changes here changes in `columnar/folds` too; ``tests/columnar/test_equal_engines.py -k generated`` finds
where. What tombstones cancel (`Profile.cancels_pending`) is relied on by `cleaner.drops`, `checking.offsets` and
`coordinator.cache`.
"""
