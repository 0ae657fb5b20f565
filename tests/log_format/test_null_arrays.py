"""An array is null only where its field may be: read fast, read slowly and written."""

from __future__ import annotations

import pytest

from offsets_log.errors import OffsetsLogError
from offsets_log.log_format import primitives as p


def test_an_array_is_not_null_unless_it_may_be() -> None:
    null = (-1).to_bytes(4, signed=True)
    plain, nullable = p.Array(p.INT32, p.INT8), p.Array(p.INT32, p.INT8, nullable=True)
    with pytest.raises(OffsetsLogError):
        p.parse_prefix(plain, null, "numbers")
    with pytest.raises(OffsetsLogError):
        p.build(plain, None, "numbers")
    assert p.parse_prefix(nullable, null, "numbers")[0] is None
    assert p.build(nullable, None, "numbers") == null
    assert p.parse_prefix(plain, bytes(4), "numbers")[0] == []
