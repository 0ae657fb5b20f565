"""The room of the Spark data source and jobs. There are none yet; what they will share is in `offsets_log`."""
