"""Parse JSON that may have been through other tools, which print a whole number as ``5.0`` or ``5e3``."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

EXACT, MOST = 1 << 53, 1 << 64
"""Below the first a float is exact; no integer of Kafka's reaches the second."""


def _number(text: str) -> int | float:
    value = float(text)
    if EXACT <= abs(value) < MOST:
        exact = Decimal(text)
        return int(exact) if exact == exact.to_integral_value() else value
    return int(value) if abs(value) < EXACT and value.is_integer() else value


DECODER = json.JSONDecoder(parse_float=_number)


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text; numbers without a fraction are integers. Raises ValueError, RecursionError."""
    return DECODER.decode(text if isinstance(text, str) else text.decode("utf-8", "surrogatepass"))
