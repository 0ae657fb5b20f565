"""S3 servers for tests of stores, one of which fails now and then."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any


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


class Failing:
    """A WSGI application before another, which answers one request in so many with 503 while it is told to."""

    def __init__(self, app: Any, every: int) -> None:
        self.app, self.every = app, every
        self.is_failing, self.failed = False, 0
        self._requests = count(1)

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        if self.is_failing and next(self._requests) % self.every == 0:
            self.failed += 1
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            body = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>"
            start_response("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        answer: Iterable[bytes] = self.app(environ, start_response)
        return answer


@contextmanager
def failing_s3_server(every: int) -> Iterator[tuple[str, int, Failing]]:
    """An empty server's host and port, and what makes it fail."""
    from moto.backends import get_backend
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    for backend in get_backend("s3").values():
        backend["aws"].reset()
    failing = Failing(DomainDispatcherApplication(create_backend_app), every)
    server = make_server("127.0.0.1", 0, failing, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield "127.0.0.1", server.port, failing
    finally:
        server.shutdown()
        thread.join()
