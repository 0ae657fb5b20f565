"""Every level, SQL and a stream on each release of Spark, and by Connect: ``make spark-matrix``.

    python -m tools.spark_matrix [RELEASE…]    such as 4.0.1 or connect-4.3.0

Packages are kept in the user's cache. A release is read by a process of its own, whose rows are compared with the
library's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

RELEASES = ("4.0.1", "4.1.1", "4.3.0", "connect-4.3.0")
CONNECT = "connect-"
FOLDER = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "offsets-log" / "spark-matrix"
ROOT = Path(__file__).parent.parent
SAMPLE = str(ROOT / "samples" / "kafka-4.3-mixed" / "log")
PATIENCE_S = 1800


def packages_of(release: str) -> Path:
    """Return the folder of a release's packages; they are installed if they are not there."""
    folder = FOLDER / release
    if not folder.exists():
        version = release.removeprefix(CONNECT)
        extra = "[connect]" if release.startswith(CONNECT) else ""
        made = folder.with_name(f".{release}")
        words = ["install", "-q", "--disable-pip-version-check", "--target", str(made), f"pyspark{extra}=={version}"]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
        made.replace(folder)
    return folder


def read(release: str) -> None:
    """Read the sample with the Spark that is imported here, and compare. Raises AssertionError."""
    import offsets_log as ol
    import spark_jobs
    from spark_jobs.options import LEVELS

    with ol.open(SAMPLE) as copy, tempfile.TemporaryDirectory() as folder:
        spark = _session(release)
        if release.startswith(CONNECT):
            spark_jobs.register(spark)
        for level in LEVELS:
            question: Any = getattr(copy, level)
            ours = question() if callable(question) else question
            found = spark.read.format("offsets_log").option("level", level).load(SAMPLE).toArrow()
            names = [name for name in found.column_names if name in ours.schema.names]
            rows = [_texts(table.select(names).to_pylist()) for table in (found, ours.to_arrow())]
            assert rows[0] == rows[1], level
            click.echo(f"{release}: {level}: {len(rows[0])} rows are equal in {len(names)} columns")
        spark.sql(f"CREATE TEMPORARY VIEW all_groups USING offsets_log OPTIONS (path '{SAMPLE}', level 'groups')")
        (counted,) = spark.sql("SELECT sum(offsets) AS offsets FROM all_groups").collect()
        assert counted["offsets"] == sum(row["offsets"] for row in copy.groups().rows())
        click.echo(f"{release}: SQL: {counted['offsets']} offsets")
        records = _streamed(spark, Path(folder))
        assert records == len(copy.records().rows())
        click.echo(f"{release}: stream: {records} records")
        spark.stop()


def _streamed(spark: Any, folder: Path) -> int:
    """Return how many records a stream writes, whose process may not start in Spark's ten seconds on a busy machine."""
    from spark_jobs.following import ATTEMPTS, TOO_SLOW

    for _ in range(ATTEMPTS):
        stream = spark.readStream.format("offsets_log").option("level", "records").load(SAMPLE)
        writing = stream.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
        try:
            writing.trigger(availableNow=True).start(f"{folder}/records").awaitTermination()
            break
        except Exception as error:
            if TOO_SLOW not in str(error):
                raise
    return int(spark.read.parquet(f"{folder}/records").count())


def _session(release: str) -> Any:
    from pyspark.sql import SparkSession

    if release.startswith(CONNECT):
        return SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    from spark_jobs.session import DAEMON, SETTINGS

    settings: dict[str, Any] = {**SETTINGS, DAEMON: "spark_jobs.daemon", "spark.sql.session.timeZone": "UTC"}
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def _texts(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(str([*row.values()]) for row in rows)


def main(releases: Sequence[str]) -> None:
    """Read with each release in turn. Raises CalledProcessError: something is otherwise there."""
    for release in releases:
        path = os.pathsep.join(map(str, (packages_of(release), ROOT, *filter(None, [os.environ.get("PYTHONPATH")]))))
        environment = {
            **os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"
        }  # fmt: skip
        environment.pop("SPARK_HOME", None)
        command = [sys.executable, "-m", "tools.spark_matrix", "--read", release]
        subprocess.run(command, env=environment, cwd=ROOT, check=True, timeout=PATIENCE_S)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(sys.argv[2])
    else:
        main(sys.argv[1:] or RELEASES)
