"""Both passes of the log cleaner over plain batches: keys and where they stand last, and what stays."""
