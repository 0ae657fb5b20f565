"""A broker's whole data directory, beyond the offsets topic: its text files, and what its metadata log says."""
