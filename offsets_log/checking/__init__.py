"""Check whether a partition would load on a release, and what else is wrong with it (`check`). Begin in `report`."""
