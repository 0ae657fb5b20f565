"""Answer the questions that bring people to a log, one module each: what changed, who did it, when, what to do."""
