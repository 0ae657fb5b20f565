"""kafka-dump-log's text back to batches, by programs that are cut from the lines it writes."""
