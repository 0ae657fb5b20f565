"""What several tests of inputs read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.disk.logs import name, partition, segment


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory of two partitions."""
    partition(tmp_path / "data", 3, {name(0): segment(0, 1), name(2): segment(2)})
    partition(tmp_path / "data", 12, {name(0): segment(0), "leader-epoch-checkpoint": b"0\n1\n0 0\n"})
    return tmp_path / "data"
