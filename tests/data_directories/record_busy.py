"""Makes recordings of data directories that were copied while clients wrote to them without pause.

    python tests/data_directories/record_busy.py JARS SCRATCH OUT NAME [PAUSE_MS [PORT]]

As record.py, with names of `VERSIONS`. The smaller the pause, the more is written, and below `LIGHT_FROM_MS` for longer
and with more copies. What brokers said directly before and after each copy is in ``words/COPY/before.json`` and
``after.json``. Of the last copy, of the broker when it was stopped, only the offsets topic stays: its markers tell what
became of transactions that were open in the others.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.data_directories.record import JAVA, SETTINGS, Broker, Recorder, say

VERSIONS = {"kafka-4.3-busy": "4.3.0", "kafka-3.9-busy": "3.9.1"}
MORE = {
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "2000",
    "log.cleaner.backoff.ms": "200",
}


LIGHT_FROM_MS = 50


def at_once(data: Path, to: Path) -> None:
    """A plain ``cp -r`` of everything; files that go away meanwhile are not in it."""
    subprocess.run(["cp", "-r", str(data), str(to)], check=False, stderr=subprocess.DEVNULL)


def folder_by_folder(first: str, seconds: float) -> Callable[[Path, Path], None]:
    """As a copy of much more data goes: folder after folder for so long.

    Args:
        first: what those begin with that are copied before all others.
    """

    def copy(data: Path, to: Path) -> None:
        names = sorted((path.name for path in data.iterdir()), key=lambda name: (not name.startswith(first), name))
        to.mkdir(parents=True)
        for name in names:
            at_once(data / name, to / name)
            time.sleep(seconds / len(names))

    return copy


def copies(pause_ms: int) -> dict[str, Callable[[Path, Path], None]]:
    """Name → how it is made."""
    seconds, quick = (2, 3) if pause_ms >= LIGHT_FROM_MS else (6, 8)
    slow = {
        "states-first": folder_by_folder("__transaction_state", seconds),
        "offsets-first": folder_by_folder("__consumer_offsets", seconds),
        "topics-first": folder_by_folder("p", seconds),
    }
    return slow | {f"quick-{i}": at_once for i in range(quick)}


class Busy:
    """The clients."""

    def __init__(self, recorder: Recorder, address: str, mode: str, pause_ms: int) -> None:
        self._recorder = recorder
        class_path = f"{recorder.classes}:{recorder.jars / '4.3.0' / 'libs'}/*"
        command = [*JAVA, "-Xmx400m", "-Dlog4j2.level=ERROR", "-cp", class_path, "Busy", address, mode, str(pause_ms)]
        errors = (recorder.scratch / "busy.out").open("ab")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        recorder.processes.append(self._process)
        recorder.wait(self._process, "ready")

    def do(self, line: str, answer: str) -> None:
        """Have them ask, or stop."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        self._recorder.wait(self._process, answer)

    def copied(self, name: str, broker: Broker, copy: Callable[[Path, Path], None]) -> None:
        """A copy, and what the broker said directly before and after it."""
        words = self._recorder.out / "words" / name
        words.mkdir(parents=True)
        self.do(f"{words}/before.json", "asked")
        began_ms = int(time.time() * 1000)
        to = self._recorder.out / "copies" / name / "data"
        to.parent.mkdir(parents=True)
        copy(broker.directories[0], to)
        for lock in to.rglob(".lock"):
            lock.chmod(0o644)
        about = {"how": copy.__qualname__, "from_ms": began_ms, "to_ms": int(time.time() * 1000)}
        self.do(f"{words}/after.json", "asked")
        (to.parent.parent / f"{name}.json").write_text(json.dumps(about) + "\n")


def main(jars: Path, scratch: Path, out: Path, name: str, pause_ms: int = 20, port: int = 24300) -> None:
    """Make one recording."""
    version = VERSIONS[name]
    recorder = Recorder(jars, scratch / name, out / name, version, sources=("Clients.java", "Tools.java", "Busy.java"))
    try:
        SETTINGS.update(MORE)
        broker = recorder.broker(port)
        busy = Busy(recorder, broker.address, "modern" if version >= "4" else "classic", pause_ms)
        time.sleep(2 if pause_ms >= LIGHT_FROM_MS else 8)
        for copy_name, copy in copies(pause_ms).items():
            busy.copied(copy_name, broker, copy)
            time.sleep(0.3)
        tools(recorder, "tools-before", broker.address)
        busy.copied("between-tools", broker, at_once)
        tools(recorder, "tools-after", broker.address)
        busy.do("hold", "held")
        time.sleep(5)
        busy.copied("held", broker, at_once)
        tools(recorder, "tools-held", broker.address)
        broker.end(signal.SIGTERM)
        recorder.copy("stopped", broker, "copied after a clean stop; other topics taken out")
        for folder in (recorder.out / "copies" / "stopped" / "data").iterdir():
            if folder.is_dir() and not folder.name.startswith("__consumer_offsets-"):
                shutil.rmtree(folder)
    finally:
        recorder.close()
    about = {"name": name, "kafka_version": version, "recorded_at": time.strftime("%Y-%m-%d"), "pause_ms": pause_ms}
    (recorder.out / "recording.json").write_text(json.dumps(about | {"settings": SETTINGS}, indent=1) + "\n")
    say(name, "recorded in", os.path.relpath(recorder.out))
    shutil.rmtree(scratch / name, ignore_errors=True)


def tools(recorder: Recorder, name: str, address: str) -> None:
    """What Kafka's tools print of groups and ends."""
    at = ("--bootstrap-server", address)
    describe = ("--describe", "--all-groups", "--offsets")
    shares = {"share-groups-offsets": ("consumer.group.ShareGroupCommand", *at, *describe, "--verbose")}
    recorder.tools(
        recorder.out / "words" / name,
        {
            "get-offsets-earliest": ("GetOffsetShell", *at, "--time", "-2"),
            "get-offsets-latest": ("GetOffsetShell", *at, "--time", "-1"),
            "groups-offsets": ("consumer.group.ConsumerGroupCommand", *at, *describe),
            **(shares if recorder.version >= "4" else {}),
        },
    )


if __name__ == "__main__":
    main(*(Path(word).resolve() for word in sys.argv[1:4]), sys.argv[4], *map(int, sys.argv[5:7]))
