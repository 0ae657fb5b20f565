"""The marker of tests that start a real broker."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka: starts a real Kafka broker; needs java, and mvn once for its jars")
