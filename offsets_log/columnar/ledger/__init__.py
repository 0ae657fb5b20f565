"""What every record of a log says and did, a row each: counting is an aggregate over it, in whatever way it was read.

columns   the columns, and what is remembered of a key on the way
kernels   rows of what kernels have staged; names of keys as numbers
ledger    the rows, in batches; those of records that were read by `pipeline`, one by one
keys      keys by their numbers, and what stands in them
"""
