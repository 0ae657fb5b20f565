"""One Spark session for all tests of this folder, which one worker runs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.coordinator.broker import QUICK
from tests.shared_files import one_at_a_time
from tests.waiting import PATIENCE_S

HERE = Path(__file__).parent
NO_JAVA = "there is no java on this machine: Spark is not tested"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """None without Java."""
    for item in items:
        if HERE in item.path.parents and shutil.which("java") is None:
            item.add_marker(pytest.mark.skip(reason=NO_JAVA))


def submit_args(settings: Mapping[str, str]) -> str:
    """``PYSPARK_SUBMIT_ARGS`` of a process whose session has settings beside its own."""
    told = [f"{name}={value}" for name, value in {"spark.ui.enabled": "false", **settings}.items()]
    return shlex.join([*chain.from_iterable(("--conf", one) for one in told), "pyspark-shell"])


@pytest.fixture(scope="session", autouse=True)
def environment() -> None:
    """Workers run this interpreter, everything stays on this machine, and Java does not compile for hours to come."""
    from spark_jobs.session import archive_options

    if shutil.which("java") is not None:
        _keep_classes()
    options = " ".join((*QUICK, archive_options(None)))
    os.environ["SPARK_SUBMIT_OPTS"] = os.environ["SPARK_DAEMON_JAVA_OPTS"] = options
    os.environ["PYSPARK_SUBMIT_ARGS"] = submit_args({"spark.executor.extraJavaOptions": options})
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def _keep_classes() -> None:
    """Let a first program keep the classes of Spark for all sessions to come."""
    from spark_jobs.session import class_archive

    archive = class_archive()
    with one_at_a_time(archive) as folder:
        if not archive.exists():
            sample = str(HERE.parent.parent / "samples" / "kafka-4.3-mixed" / "log")
            words = ["compact", "--input", sample, "--output", f"{folder}/offsets", "--master", "local[2]", "-q"]
            subprocess.run([sys.executable, "-m", "spark_jobs", *words], check=True, timeout=2 * PATIENCE_S)


@pytest.fixture(scope="session")
def spark(environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of two threads."""
    from pyspark.sql import SparkSession

    from spark_jobs.session import DAEMON
    from spark_jobs.session import SETTINGS as OWN

    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in (SETTINGS | OWN | {DAEMON: "spark_jobs.daemon"}).items():
        builder = builder.config(name, value)
    session = builder.config("spark.local.dir", str(tmp_path_factory.mktemp("spark"))).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    import spark_jobs

    spark_jobs.register(session)
    yield session
    session.stop()
