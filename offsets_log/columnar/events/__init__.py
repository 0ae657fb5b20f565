"""The table of all records: its columns, filled by kernels and on the slow path, as Arrow tables."""
