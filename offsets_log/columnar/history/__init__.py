"""Every event of a key in its order, and what was served after each, by kernels."""
