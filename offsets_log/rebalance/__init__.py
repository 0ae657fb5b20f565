"""Rebalances of groups: protocol votes, assignments of partitions, and what a log tells of both.

Assigning             `assignors`: Kafka's assignors; `vote`: which of them a group uses; `partitioners`: partitions
                      of producers' messages; `cases`: questions to them as JSON
Joining and syncing   `classic_group`, `membership`: the coordinator's side; `rounds`: consumers that talk to it
Reading a log         `timeline`: the `generation`s of groups; `storms`: too many of them; `verify`: assignments
                      computed again; `rows`: output rows
Used by all           `consumer_bytes`: the consumer protocol's bytes; `java_order`: orders of Java's hash tables
"""
