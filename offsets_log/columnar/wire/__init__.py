"""Batches and records as kernels read them: wire types, and schema tables as programs of columns."""
