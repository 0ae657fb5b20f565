"""An S3 server for tests of stores."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager


def s3_url(host: str, port: int, place: str) -> str:
    """The URL of a place in it."""
    return f"s3://k:secret@{place}?scheme=http&endpoint_override={host}%3A{port}&region=us-east-1"


@contextmanager
def s3_server() -> Iterator[tuple[str, int]]:
    """Its host and port. It is empty, though servers of one process share what they hold."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    reset = urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")
    urllib.request.urlopen(reset).close()
    yield host, port
    server.stop()
