"""Rebalances of groups: who votes for what, who gets which partition, and what a log tells of it.

Who gets what         `assignors` as Kafka's own; `vote` which of them; `partitioners` of producers; `cases` JSON
How groups rebalance  `classic_group` and `membership` the coordinator's side; `rounds` consumers that play against it
What a log tells      `timeline` of `generation`s, `storms` in them, `verify` by the assignors run again; `rows` printed
Used by these         `consumer_bytes` the consumer protocol's bytes; `java_order` orders of Java's hash tables
"""
