"""One round of the log cleaner over a partition, as a broker does it, into new files: the old ones stay.

    files ─► `bounds` ─► pass 1: `offset_map` ─► `grouping` ─► pass 2: `retention` ─► `rewriting` ─► `SegmentWriter`s
    (opened   from where   key → last offset       segments       what is kept          of what is     `.log` and
    by broker/) to where                           put together   of a batch            left           indexes

`round.clean` goes the whole way; `result` says what became of it, and why bytes are kept. `transactions` is the state
that both passes carry along. Nothing here reads files or clocks: `settings` has all that decides.

References: ``Cleaner.java``, ``LogCleanerManager.java``, ``CleanedTransactionMetadata.java``, ``MemoryRecords.java``.
"""
