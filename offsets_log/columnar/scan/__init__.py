"""A log read in order: plain batches by a kernel (`staging`), all others on the slow path, record by record.

`interner` gives each key a number, once; `reading` goes on where a kernel came back, and says why it did.
"""
