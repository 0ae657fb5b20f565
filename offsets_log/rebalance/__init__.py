"""Rebalances of groups: who votes for what, who gets which partition, and what a log tells of it.

`vote` and `partitioners` stand alone. The assignors (`assignor` is their interface) give each member its partitions as
Kafka's own do; `classic_group` is the coordinator's side of a rebalance, `rounds` plays both. `timeline` reads a log's
generations, `verify` runs the assignors again on what they were given.
"""
