"""Sessions of programs: quiet, patient, and with errors of one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from offsets_log.errors import InputError
from spark_jobs.session import SETTINGS, session, with_retries
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent.parent
SAMPLE = "samples/kafka-4.3-mixed/log"


def test_a_local_master_tries_again() -> None:
    assert with_retries("local") == "local[1,4]"
    assert with_retries("local[2]") == "local[2,4]"
    assert with_retries("local[*]") == "local[*,4]"
    for master in ("local[2,1]", "yarn", "spark://h:7077"):
        assert with_retries(master) == master
    assert SETTINGS["spark.ui.enabled"] == "false"


JAVA = """An error occurred while calling o71.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Total size of results is bigger than maxResultSize
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:3122)
Caused by: java.io.IOException: the disk is full
\t... 42 more"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Py4JError(JAVA), "Spark: the disk is full"),
        (PySparkException(message="[SOMETHING] is wrong\nand more"), "Spark: [SOMETHING] is wrong"),
        (PySparkException(message="X\noffsets_log.errors.InputError: a: not there\n at java"), "a: not there"),
    ],
)  # fmt: skip
def test_errors_of_java_are_one_sentence(error: Exception, words: str) -> None:
    opening: Any = SimpleNamespace(result=lambda: None, close=lambda: None)
    with pytest.raises(InputError) as raised, session(opening):
        raise error
    assert str(raised.value) == words


def test_quiet_says_nothing_at_all(environment: None, tmp_path: Path) -> None:
    """Neither Java, nor Spark."""
    words = ["compact", "--input", SAMPLE, "--output", str(tmp_path / "offsets"), "--master", "local[2]", "-q"]
    command = [sys.executable, "-m", "spark_jobs", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_package_alone_imports_nothing() -> None:
    """Spark's processes that plan import the source, and neither the programs nor Spark's SQL twice."""
    code = "import sys, spark_jobs; assert not {'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=PATIENCE_S)
