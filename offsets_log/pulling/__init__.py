"""A copy made from a running cluster: partitions appended whole, in rounds, and gone on with after any end."""
