"""The questions that bring people to a log, one module each: what changed, who did it, when, and what to do."""
