"""Log that is missing, as Spark tells it: the words and the status of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner, Result

from offsets_log_cli.main import main as offsets_log
from spark_jobs.__main__ import main as spark_jobs_main
from tests.cli.test_missing_log import CLEANED, DAMAGES, MIXED, OLD, active_cut, segment
from tests.spark.tasks import in_process

__all__ = ["in_process"]

Recording = Callable[[str], Path]


def compact(main: Command, *words: str) -> Result:
    return CliRunner().invoke(main, ["compact", *words], catch_exceptions=False)


def missing(result: Result) -> list[str]:
    """Without what explains it: for files that are marked for deletion Spark does not look."""
    lines = (line for line in result.stderr.splitlines() if line.startswith("missing: "))
    return sorted(line.partition(", for nothing is deleted")[0].partition("; ")[0] for line in lines)


@pytest.mark.parametrize("name", DAMAGES)
def test_lost_log_is_told_as_on_this_machine(name: str, in_process: None, recording: Recording, tmp_path: Path) -> None:
    harm, source, folder, _, expected = DAMAGES[name]
    data, to = str(tmp_path / "data"), str(tmp_path / "offsets")
    shutil.copytree(recording(source) / folder, data)
    harm(tmp_path / "data")
    here, there = compact(offsets_log, data), compact(spark_jobs_main, "--input", data, "--output", to)
    assert (here.exit_code, there.exit_code) == (3, 3)
    assert missing(there) == missing(here)
    assert len(missing(there)) == len(expected)


def test_what_the_cleaner_took_is_explained(in_process: None, recording: Recording, tmp_path: Path) -> None:
    """By its checkpoint, and without one by a cleaned file beside the gap."""
    lone = tmp_path / "__consumer_offsets-3"
    shutil.copytree(recording(OLD) / "log" / lone.name, lone)
    for number, log in enumerate((recording(OLD) / "log", lone)):
        result = compact(spark_jobs_main, "--input", str(log), "--output", str(tmp_path / str(number)))
        assert (result.exit_code, missing(result)) == (0, [])


def test_jobs_end_with_status_3_or_under_strict_with_1(in_process: None, recording: Recording, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(recording(MIXED) / "log", data)
    active_cut(data)
    result = CliRunner().invoke(spark_jobs_main, ["compact", "--input", str(data), "--output", str(tmp_path / "out")])
    assert result.exit_code == 3
    assert "missing: offsets partition 3: offsets 123 to 156 are missing" in result.output
    assert "the log was cut" in result.output
    strict = ["compact", "--strict", "--input", str(data), "--output", str(tmp_path / "strict")]
    result = CliRunner().invoke(spark_jobs_main, strict)
    assert result.exit_code == 1
    assert not (tmp_path / "strict").exists()


def test_in_a_store_in_the_network_too(in_process: None, recording: Recording, tmp_path: Path) -> None:
    from spark_jobs.driver import plan_reading
    from spark_jobs.files import find_logs
    from spark_jobs.options import SourceOptions

    data = tmp_path / "data"
    shutil.copytree(recording(CLEANED) / "log-before", data)
    (data / segment(1, 1249)).unlink()
    shutil.rmtree(data / "__consumer_offsets-2")
    reading = SourceOptions(paths=(f"local://{data}",), storage_options={"auto_mkdir": False})
    with ExitStack() as stack:
        absent = find_logs(reading, stack).absent
    assert [(one.offsets_partition, one.last_offset) for one in absent] == [(2, 520)]
    found = plan_reading(reading)
    assert {files.log.checkpoints.high_watermark for files in found.logs if files.log.offsets_partition == 1} == {1291}
