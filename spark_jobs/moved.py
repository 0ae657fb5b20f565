"""Names of Spark that its releases before 4.2 do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxBytes,
            SupportsTriggerAvailableNow,
        )
    except ImportError:

        class ReadMaxBytes:
            """A limit that these releases do not give."""

            def __init__(self, *given: Any) -> None: ...

        ReadLimit, ReadAllAvailable = object, ReadMaxBytes
        SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

__all__ = ["ReadAllAvailable", "ReadLimit", "ReadMaxBytes", "SupportsTriggerAvailableNow"]
