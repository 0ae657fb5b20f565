"""Everything a person can learn from the files of Kafka's ``__consumer_offsets``, without a broker.

``offsets_log.open(path)`` opens a copy; its methods are questions, and each returns a `Table`. To decode single
records, begin at `offsets_log.messages.registry`; to replay them, at `offsets_log.pipeline`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offsets_log.copy import Copy, open
    from offsets_log.errors import OffsetsLogError
    from offsets_log.table import Table

__version__: str
__all__ = ["Copy", "OffsetsLogError", "Table", "__version__", "open"]

_HOMES = {"Copy": "copy", "OffsetsLogError": "errors", "Table": "table", "open": "copy"}
"""Name → the module that has it, loaded when it is asked for: whoever wants one module need not wait for all."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("offsets-log")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
