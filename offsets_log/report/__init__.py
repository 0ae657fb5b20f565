"""Report on a log in one page: what its groups committed over time, who wrote it, what is open and what is wrong."""
