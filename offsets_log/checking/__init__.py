"""Would a partition load on a release, and what else is wrong with it: what `check` finds. Begins in `report`."""
