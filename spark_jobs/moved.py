"""Names of Spark that are elsewhere in some of its releases from 4.0 on, or nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.datasource import EqualTo, Filter, In
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
else:
    from pyspark.sql import datasource

    class _Absent:
        """What this release does not have: nothing is one."""

        def __init__(self, *given: Any) -> None: ...

    EqualTo, Filter, In = (getattr(datasource, name, _Absent) for name in ("EqualTo", "Filter", "In"))
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxBytes,
            SupportsTriggerAvailableNow,
        )
    except ImportError:
        ReadLimit, ReadAllAvailable = _Absent, _Absent
        ReadMaxBytes = type("ReadMaxBytes", (_Absent,), {})
        SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

__all__ = ["EqualTo", "Filter", "In", "ReadAllAvailable", "ReadLimit", "ReadMaxBytes", "SupportsTriggerAvailableNow"]
