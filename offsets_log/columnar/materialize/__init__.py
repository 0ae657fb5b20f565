"""What kernels left in arrays, as values, timelines of groups, and Arrow tables."""
