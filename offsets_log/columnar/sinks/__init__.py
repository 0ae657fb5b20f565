"""The same records as lines of text, of every format: where lines are cut, and what is put between."""
