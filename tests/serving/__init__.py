"""Tests of `offsets_log.serving`, `cluster.server` and ``serve``."""
