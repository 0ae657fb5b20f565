"""Everything a person can learn from the files of Kafka's ``__consumer_offsets``. Start at `offsets_log.pipeline`."""
