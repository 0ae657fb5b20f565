"""Others over the same files: a Python client library, kafka-dump-log, and Kafka's own coordinator and log cleaner.

Kafka is measured with the settings its scripts start it with; its jars come from Maven Central, as for the tests.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.generator_content import groups
from benchmarks.inputs import Log
from benchmarks.timing import Measured, NotMeasuredError, repeated, run_process, seconds_of
from offsets_log.cleaner.settings import Rules, Settings
from tests.cleaner.cases import holds_the_same
from tests.coordinator.broker import Broker, NotAvailableError, jars

JVM = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
"""Kafka's own defaults (``kafka-run-class.sh``)."""
DUMP_HEAP, BROKER_HEAP = "-Xmx256m", "-Xmx1g"
LOADED = re.compile(rb"Finished loading of metadata from __consumer_offsets-0 .*?in (\d+) ?m")
DUMPED = re.compile(rb'key: (\{"type":"1".*?\}\}) payload: (?:\{"version":"\d+","data":\{"offset":(\d+)|<DELETE>)')
CLEANER = Path(__file__).with_name("CleanerRound.java")
OF_SEGMENTS = (".log", ".index", ".timeindex", ".txnindex")
LOAD_SECONDS = 900
STOP_SECONDS = 60


def aiokafka(log: Log, repeat: int) -> Measured:
    """The whole process of `aiokafka_peer`."""
    if importlib.util.find_spec("aiokafka") is None:
        raise NotMeasuredError("aiokafka is not installed")
    command = [sys.executable, "-m", "benchmarks.aiokafka_peer", *map(str, log.segments)]
    with tempfile.TemporaryFile() as out:

        def run() -> float:
            out.seek(0)
            return seconds_of(lambda: run_process(command, out))

        seconds = repeated(run, repeat)
        out.seek(0)
        said = json.loads(out.readline())
    return Measured(seconds=seconds, agrees=said == log.truth["in_record_order"] | {"records": log.truth["records"]})


def _kafka() -> Path:
    try:
        return jars()
    except NotAvailableError as reason:
        raise NotMeasuredError(str(reason)) from None


# ------------------------------------------------------------------------------------------ dump-log


def dump_log(log: Log, repeat: int) -> Measured:
    """The tool into nothing; its start is that over an empty segment. What it prints is read once."""
    tool = ["java", DUMP_HEAP, *JVM, "-cp", f"{_kafka()}/*", "org.apache.kafka.tools.DumpLogSegments"]
    tool += ["--offsets-decoder", "--files"]
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / f"{0:020}.log"
        empty.touch()
        start = repeated(lambda: seconds_of(lambda: run_process([*tool, str(empty)])), min(repeat, 3))
    command = [*tool, ",".join(map(str, log.segments))]
    seconds = repeated(lambda: seconds_of(lambda: run_process(command)), repeat)
    agrees = _dumped(command) == log.truth["in_record_order"]
    return Measured(seconds=seconds, agrees=agrees, start_seconds=statistics.median(start))


def _dumped(command: list[str]) -> dict[str, int]:
    """The newest commits in the tool's lines."""
    newest: dict[bytes, int] = {}
    with tempfile.TemporaryFile() as out:
        run_process(command, out)
        out.seek(0)
        for line in out:
            if (match := DUMPED.search(line)) is None:
                continue
            key, offset = match.groups()
            if offset is None:
                newest.pop(key, None)
            else:
                newest[key] = int(offset)
    return {"keys": len(newest), "sum": sum(newest.values())}


# ---------------------------------------------------------------------------------- coordinator load


class LoadingBroker(Broker):
    """A broker that loads segments of any number at the speed of a real one."""

    @contextlib.contextmanager
    def loaded(self) -> Iterator[float]:
        """The broker up with all loaded: seconds of the load, in its own words. Shut down cleanly at the end."""
        command = ["java", BROKER_HEAP, *JVM, "-Dorg.apache.logging.log4j.level=INFO"]
        command += ["-cp", f"{self.libs}/*", "kafka.Kafka", str(self.properties)]
        with self.output.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=self.work)
            try:
                yield self._wait_for_load(process)
            finally:
                process.terminate()
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _wait_for_load(self, process: subprocess.Popen[bytes]) -> float:
        deadline = time.monotonic() + LOAD_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if (match := LOADED.search(self.output.read_bytes())) is not None:
                return int(match[1]) / 1000
            time.sleep(0.2)
        raise NotMeasuredError(f"the broker did not load the log within {LOAD_SECONDS} s")

    def place_segments(self, log: Log) -> None:
        """Copies of a log's segments in the place of partition 0; the broker is down."""
        self.place(0, b"")
        for segment in log.segments:
            shutil.copyfile(segment, self.data / "__consumer_offsets-0" / segment.name)


def coordinator_load(log: Log, repeat: int) -> Measured:
    """Kafka's own load of the partition: every start after the first, which recovers the log and makes its indexes."""
    libs = _kafka()
    options = log.options
    questions: dict[str, list[tuple[str, int]]] = {
        group.name: [] for group in groups(options.groups, options.topics, options.with_metadata)
    }
    with tempfile.TemporaryDirectory(dir=log.folder.parent) as folder:
        broker = LoadingBroker(libs, Path(folder), partitions=1)
        with broker.running():
            broker.ask({"nobody": []})
        broker.place_segments(log)
        with broker.loaded():
            offsets = broker.ask(questions)["offsets"]
        seconds = []
        for _ in range(repeat):
            with broker.loaded() as load_seconds:
                seconds.append(load_seconds)
    answer = {"keys": len(offsets), "sum": sum(row[3] for row in offsets)}
    return Measured(seconds=seconds, agrees=answer == log.truth["served"])


# -------------------------------------------------------------------------------------- log cleaner


def log_cleaner(log: Log, repeat: int) -> Measured:
    """A round of Kafka's cleaner; its start is that of the JVM and the opening of the log, which makes the indexes.

    What it leaves is held against what `clean` writes at the same time of the clock.
    """
    libs, now_ms = _kafka(), int(time.time() * 1000)
    starts = []
    with tempfile.TemporaryDirectory(dir=log.folder.parent) as folder:
        work = Path(folder)
        run_process(["javac", "-cp", f"{libs}/*", "-d", str(work), str(CLEANER)])
        theirs, ours = work / "__consumer_offsets-0", work / "ours"
        command = ["java", BROKER_HEAP, *JVM, "-cp", f"{libs}/*{os.pathsep}{work}", CLEANER.stem]

        def run() -> float:
            shutil.rmtree(theirs, ignore_errors=True)
            theirs.mkdir()
            for segment in log.segments:
                (theirs / segment.name).hardlink_to(segment)  # it deletes segments, and writes to none
            with tempfile.TemporaryFile() as out:
                seconds = seconds_of(lambda: run_process([*command, str(now_ms), str(theirs)], out))
                out.seek(0)
                starts.append(seconds - float(out.read().split()[-1]))
            return seconds

        seconds = repeated(run, repeat)
        options = ["--shutdown", "clean", "--now", str(now_ms), "--quiet", "-o", "jsonl"]
        run_process(["offsets-log", "clean", str(log.folder), *options, "--to", str(ours)])
        agrees = _are_cleaned_alike(_of_segments(ours / theirs.name), _of_segments(theirs), now_ms)
    return Measured(seconds=seconds, agrees=agrees, start_seconds=statistics.median(starts))


def _of_segments(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in OF_SEGMENTS}


def _are_cleaned_alike(ours: dict[str, bytes], theirs: dict[str, bytes], now_ms: int) -> bool:
    """Whether all bytes are equal; of segments with batches that were compressed again, all that is in them."""
    settings = Settings(now_ms=now_ms, rules=Rules.of((4, 3)))
    packed = {name[:20] for name in theirs.keys() & ours.keys() if name.endswith(".log") and ours[name] != theirs[name]}
    others = [{name: data for name, data in files.items() if name[:20] not in packed} for files in (ours, theirs)]
    return others[0] == others[1] and all(holds_the_same(ours, theirs, stem, settings) for stem in packed)
