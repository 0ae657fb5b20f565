"""Few records of a large log: a kernel chooses the batches that have any of them, and only these are decoded."""
