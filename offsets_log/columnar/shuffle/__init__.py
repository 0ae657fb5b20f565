"""What a cluster sends between its tasks: the state of a piece of a log in one blob, and raw records."""
