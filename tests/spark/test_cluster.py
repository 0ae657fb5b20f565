"""A standalone cluster of two workers on this machine: the package comes as an archive, executors and workers die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import IO

import pyarrow.parquet as pq
import pytest

from benchmarks.generate import Options, generate
from tests.coordinator.broker import free_port
from tests.waiting import PATIENCE_S, wait_for

ROOT = Path(__file__).parent.parent.parent


@dataclass
class Cluster:
    """Its processes, each the leader of a group of its own."""

    master: str
    web: str
    environment: dict[str, str]
    workers: list[subprocess.Popen[bytes]]

    def state(self) -> dict[str, object]:
        with urllib.request.urlopen(f"{self.web}/json/", timeout=PATIENCE_S) as answer:
            found: dict[str, object] = json.load(answer)
        return found

    def alive_workers(self) -> int:
        try:
            return int(str(self.state()["aliveworkers"]))
        except OSError:  # the master does not listen yet
            return 0


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What --py-files takes: this project's packages and nothing else."""
    archive = tmp_path_factory.mktemp("package") / "offsets_log.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for name in ("offsets_log", "spark_jobs"):
            for path in sorted((ROOT / name).rglob("*.py")):
                made.write(path, path.relative_to(ROOT))
                compiled = Path(cache_from_source(str(path)))
                if compiled.exists():  # a second less for each process
                    made.write(compiled, path.relative_to(ROOT).with_suffix(".pyc"))
    return archive


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    import pyspark

    folder = tmp_path_factory.mktemp("cluster")
    port, web = free_port(), free_port()
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOG_DIR": str(folder),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / f"{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [spark_class, f"org.apache.spark.deploy.{name}", *arguments],
                env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        started.append(process)
        return process

    try:
        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web))
        made = Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{web}", environment, [])
        for host in ("127.0.0.1", "127.0.0.2"):  # Spark copies no task within a host
            made.workers.append(
                start("worker.Worker", "-c", "1", "-m", "1g", "--host", host, "--webui-port", "0", made.master)
            )
        wait_for("both workers are known to the master", lambda: made.alive_workers() == 2, every_s=0.2)
        yield made
    finally:
        for process in started:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and those it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def processes(cluster: Cluster, word: bytes) -> dict[int, int]:
    """Processes below the workers that have a word on their command line → the worker's process."""
    workers = {worker.pid for worker in cluster.workers}
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                if word in (path / "cmdline").read_bytes() and os.getsid(int(path.name)) in workers:
                    found[int(path.name)] = os.getsid(int(path.name))
            except OSError:
                continue
    return found


EXECUTOR, TASKS = b"CoarseGrainedExecutorBackend", b"pyspark.daemon"


def submit(
    cluster: Cluster,
    package: Path,
    log: Path,
    output: Path,
    words: IO[bytes],
    *more: str,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """compact under spark-submit; the driver has the archive too, and no other copy of the package before it."""
    import pyspark

    program = output.with_suffix(".py")
    program.write_text(
        "import offsets_log, sys\n"
        f"assert offsets_log.__file__.startswith({str(package)!r}) or '.zip' in offsets_log.__file__\n"
        "from spark_jobs.__main__ import main\nmain(prog_name='spark_jobs')\n"
    )
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", cluster.master,
        "--py-files", str(package), "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false",
        "--conf", "spark.executor.memory=512m", "--conf", "spark.sql.shuffle.partitions=4",
        "--conf", f"spark.executor.extraJavaOptions={cluster.environment['SPARK_SUBMIT_OPTS']}",
        *chain.from_iterable(("--conf", f"{name}={value}") for name, value in settings.items()),
        "--driver-memory", "512m", str(program), "compact", "--input", str(log), "--output", str(output), *more,
    ]  # fmt: skip
    return subprocess.Popen(
        command, env=cluster.environment, cwd=output.parent, stdout=words, stderr=words, start_new_session=True
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log") / "data"
    generate(folder, Options(bytes=30_000_000, groups=100, segment_bytes=1_500_000, transactions=0.1))
    return folder


def answer(output: Path) -> dict[str, int]:
    offsets = pq.read_table(output)["committed_offset"].to_pylist()
    return {"keys": len(offsets), "sum": sum(offsets)}


def test_a_driver_killed_and_run_again(cluster: Cluster, package: Path, log: Path, tmp_path: Path) -> None:
    """The first run leaves no output, the second one is whole."""
    expected = json.loads((log / "truth.json").read_bytes())["served"]
    words, output = tmp_path / "words", tmp_path / "offsets"
    with words.open("wb") as stream:
        job = submit(cluster, package, log, output, stream)
        try:
            wait_for("a task is at work", lambda: processes(cluster, TASKS), of=job, said=words.read_text)
        finally:
            stop(job)
        assert not output.exists()
        again = submit(cluster, package, log, output, stream)
        try:
            again.wait(2 * PATIENCE_S)
        finally:
            stop(again)
    assert again.returncode == 0, words.read_text(errors="replace")[-3000:]
    assert answer(output) == expected


def test_a_task_that_hangs_is_copied(
    cluster: Cluster, package: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """Spark runs it on the other host too, where it writes the same file; the answer has each row once."""
    log = tmp_path_factory.mktemp("partitions") / "data"
    generate(log, Options(bytes=8_000_000, groups=100, segment_bytes=1_000_000, offsets_partitions=8))
    words, events, output = tmp_path / "words", tmp_path / "events", tmp_path / "offsets"
    events.mkdir()
    speculation = {
        "spark.speculation": "true", "spark.speculation.quantile": "0.1", "spark.speculation.multiplier": "1.1",
        "spark.speculation.interval": "100ms", "spark.speculation.minTaskRuntime": "100ms",
        "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }  # fmt: skip
    hung: list[int] = []
    with words.open("wb") as stream:
        job = submit(cluster, package, log, output, stream, settings=speculation)
        try:
            wait_for("a task is at work", lambda: workers(cluster), of=job, said=words.read_text, every_s=0.02)
            hung += workers(cluster)[:1]
            os.kill(hung[0], signal.SIGSTOP)
            job.wait(2 * PATIENCE_S)
        finally:
            stop(job)
            for pid in hung:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert job.returncode == 0, words.read_text(errors="replace")[-3000:]
    told = [json.loads(line) for file in events.rglob("events_*") for line in file.read_text().splitlines()]
    started = [one["Task Info"] for one in told if one["Event"] == "SparkListenerTaskStart"]
    assert {task["Host"] for task in started if task["Speculative"]} <= {"127.0.0.1", "127.0.0.2"}
    assert [task for task in started if task["Speculative"]]
    assert answer(output) == json.loads((log / "truth.json").read_bytes())["served"]


def workers(cluster: Cluster) -> list[int]:
    """Processes that run tasks, forks of daemons."""
    daemons, found = processes(cluster, TASKS), []
    for pid in daemons:
        with suppress(OSError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if parent in daemons:
                found.append(pid)
    return found


def test_an_executor_killed_and_a_worker_lost(cluster: Cluster, package: Path, log: Path, tmp_path: Path) -> None:
    """The job finishes with the answer all the same, of a log that both workers read in pieces."""
    expected = json.loads((log / "truth.json").read_bytes())["served"]
    words = tmp_path / "words"
    with words.open("wb") as stream:
        job = submit(cluster, package, log, tmp_path / "offsets", stream, "--option", "cut_bytes=2m")
        try:
            wait_for(
                "both workers are at work",
                lambda: len(set(processes(cluster, TASKS).values())) == 2,
                of=job,
                said=lambda: words.read_text(errors="replace")[-3000:],
            )
            first, second = cluster.workers
            killed = {pid for pid, worker in processes(cluster, EXECUTOR).items() if worker == first.pid}
            os.kill(min(killed), signal.SIGKILL)
            wait_for("the master has the executor replaced", lambda: first.pid in new_owners(cluster, killed), of=job)
            stop(second)
            job.wait(2 * PATIENCE_S)
        finally:
            stop(job)
    assert job.returncode == 0, words.read_text(errors="replace")[-3000:]
    assert answer(tmp_path / "offsets") == expected


def test_a_round_with_an_executor_killed(cluster: Cluster, log: Path, tmp_path: Path) -> None:
    """Its tasks are done again elsewhere, and may have written some of their files: the bytes are those of one machine.

    The cluster may have lost a worker before.
    """
    now = ["--now", "2100-01-01T00:00:00Z", "--segment-bytes", "1500000", "--quiet", "-o", "jsonl"]
    words = ["clean", str(log), *now, "--to"]
    here = [sys.executable, "-c", "from offsets_log_cli.main import run; run()", *words, str(tmp_path / "here")]
    environment = {**cluster.environment, "PYTHONPATH": str(ROOT)}
    rows = subprocess.run(here, env=environment, capture_output=True, check=True).stdout
    there = [sys.executable, "-m", "spark_jobs", *words, str(tmp_path / "there"), "--master", cluster.master]
    said = tmp_path / "words"
    with said.open("wb") as stream:
        job = subprocess.Popen(
            there, env=environment, stdout=subprocess.PIPE, stderr=stream, start_new_session=True
        )  # fmt: skip
        try:
            wait_for("an executor is at work", lambda: processes(cluster, TASKS) or job.poll() is not None)
            os.kill(min(processes(cluster, EXECUTOR)), signal.SIGKILL)
            told, _ = job.communicate(timeout=2 * PATIENCE_S)
        finally:
            stop(job)
    assert job.returncode == 0, said.read_text(errors="replace")[-3000:]
    assert told == rows
    made = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "here", tmp_path / "there")
    ]
    assert made[0] == made[1]


def new_owners(cluster: Cluster, killed: set[int]) -> set[int]:
    """The workers of executors but the killed ones."""
    return {worker for pid, worker in processes(cluster, EXECUTOR).items() if pid not in killed}
