"""The live memory of a group coordinator as a library: elections, loads, commits, fetches, deletions.

`cache` is its face, `log` what it writes to and loads from, `records` what it writes.
"""
