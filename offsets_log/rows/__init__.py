"""Make what is printed: rows of offsets, records and groups, a survey's page, kafka-dump-log's lines."""
