"""One page about a log: what its groups committed over time, who wrote it, what is open and what is wrong."""
