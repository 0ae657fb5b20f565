"""Kafka's requests and responses as schema tables, for clients and servers alike: a module an API.

`api` is how a frame is made of two tables, `registry` all of them; `tests/protocol` holds them against Kafka's own
descriptions.
"""
