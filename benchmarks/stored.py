"""``compact`` of a log that a web server on this machine has: what fetching costs beside reading."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.commands import COMPACT
from benchmarks.inputs import Log
from benchmarks.timing import Measured, repeated, run_process, seconds_of


class Ranges(SimpleHTTPRequestHandler):
    """Sends files, and ranges of them, without a copy of their bytes."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Send a file, a range, or a directory's page."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            super().do_GET()
            return
        size = path.stat().st_size
        asked = self.headers.get("Range", f"bytes=0-{size - 1}").removeprefix("bytes=").split("-")
        begin, end = int(asked[0]), min(int(asked[1] or size), size - 1)
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Length", str(end - begin + 1))
        self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.end_headers()
        self.wfile.flush()
        with path.open("rb") as file:
            while begin <= end and (
                sent := os.sendfile(self.connection.fileno(), file.fileno(), begin, end - begin + 1)
            ):
                begin += sent


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The URL of a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def measure(log: Log, repeat: int) -> Measured:
    """The whole process, from start to exit."""
    with tempfile.TemporaryDirectory(dir=log.folder.parent) as folder, serving(log.folder) as url:
        out = Path(folder) / COMPACT.output
        command = ["offsets-log", COMPACT.name, url, *COMPACT.arguments, "--quiet", "--to", str(out)]
        seconds = repeated(lambda: seconds_of(lambda: run_process(command)), repeat)
        return Measured(seconds=seconds, agrees=COMPACT.is_right(out, log.truth))
