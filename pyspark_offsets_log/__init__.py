"""Where Spark finds the data source ``offsets_log`` by itself: it looks into packages whose names begin so."""

from spark_jobs.source import OffsetsLogSource as DefaultSource

__all__ = ["DefaultSource"]
