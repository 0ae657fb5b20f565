"""What every record of a log says and did, a row each: counting is a sum over it, in whatever way it was read.

columns    the columns, and what is remembered of a key on the way
kernels    rows of what kernels have staged; names of keys as numbers
ledger     the rows on their way to a question, in batches
by_events  the rows of a log that is read record by record
numbers    numbers for what a question meets
"""
