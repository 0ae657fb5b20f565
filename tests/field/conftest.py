"""The inputs, unpacked once a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import unpack_once


@pytest.fixture(scope="session")
def field(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The folder of all inputs: read it, never write."""
    return unpack_once(Path(__file__).parent / "inputs.tar.xz", tmp_path_factory, request)
