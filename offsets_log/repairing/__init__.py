"""All of a partition that can be read, as valid segments, without what a broker would cut off or stumble over.

    batches, damage, tails ─► `picking` ─► `unloadable` ─► `writing` ─► files of a folder
    of a log                  what stays   which records    segments, indexes,
                              of a batch   end a load       snapshots, epochs

Intact batches stay as they are, at their offsets; `result` says what is left out, and why. A damaged record goes out of
its batch as the cleaner takes out records (`offsets_log.cleaner.rewriting`).
"""
