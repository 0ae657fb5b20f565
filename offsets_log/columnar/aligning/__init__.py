"""Records of two topics side by side: which of the target is which of the source, by time and hash."""
