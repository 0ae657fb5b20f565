"""A read-only coordinator over a copy: what it serves (`state`), and what it answers to each request (`answers`)."""
