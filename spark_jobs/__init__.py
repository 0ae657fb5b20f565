"""The same answers on Spark: a data source and jobs over `offsets_log`. Needs the extra ``offsets-log[spark]``."""
