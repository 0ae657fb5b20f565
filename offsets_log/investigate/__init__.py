"""Answer the questions that bring people to a log, one module each: what changed, who did it, when, what to do.

where    `where`; with --of also `groups`
groups   `groups`
diff     `copies` what is compared with what, `diff` what changed, `removal` why an offset is gone
history  `history` record by record, `holders` who held a partition; in bulk `bulk_history`, of which `history_keys` has
         the names, `history_lines` and `history_tables` the output
top      `writers`, `writer_counts`; `clients` who held what
"""
