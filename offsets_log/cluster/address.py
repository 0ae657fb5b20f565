"""Addresses of brokers and listeners: ``HOST:PORT``."""

from __future__ import annotations

from offsets_log.errors import ClusterError

MAX_PORT = (1 << 16) - 1


def address(server: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT`` or ``[HOST]:PORT``. Raises ClusterError for anything else."""
    host, _, port = server.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port[:6]) > MAX_PORT:
        raise ClusterError(f"{server} is not HOST:PORT, such as localhost:9092")
    return host.removeprefix("[").removesuffix("]"), int(port[:6])
