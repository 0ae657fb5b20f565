"""The same answers in bulk: whole logs read, replayed and written by compiled kernels.

    segments ─► wire ─► scan ─► folds ─► state ─► materialize ─► tables
                         │       └─ one for each question that counts
                         └─ what is not plainly right goes to the construct path, in its place

Kernels never accept what the construct path refuses, and word no error: a batch with anything unusual in it is read
record by record. `jit` is how kernels are compiled and kept; `needs` which of them a question waits for. The two
engines are compared in `tests/columnar`; set `BULK_FROM_BYTES` (`large`) to 0 to try kernels on small inputs,
``NUMBA_DISABLE_JIT=1`` without compiling.
"""
