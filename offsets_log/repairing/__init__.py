"""Repair of a partition: valid segments of all that can be read, without what a broker would cut off or fail at.

    batches, damage, tails ─► `picking` ─► `unloadable` ─► `writing` ─► files of a folder
    of a log                  what stays   which records    segments, indexes,
                              of a batch   end a load       snapshots, epochs

Intact batches stay as they are, at their offsets; `result` says what is left out, and why. A damaged record is removed
from its batch in the way the cleaner removes records (`offsets_log.cleaner.rewriting`).
"""
