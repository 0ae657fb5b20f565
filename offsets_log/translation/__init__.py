"""Offsets of one cluster as those of another: where each group goes on in the copies of its topics.

By the records that both sides have (`alignment`, the surest way), by headers, by what MirrorMaker 2 wrote, by a map,
or by time. `answers` says how sure each offset is; where it cannot be sure a group goes back, never ahead.
"""
