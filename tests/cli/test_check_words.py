"""What is said of loads that fail, or that differ by the coordinator of a release."""

from __future__ import annotations

from pathlib import Path

from tests.cli.checked import Recording
from tests.cli.runs import run


def test_a_load_that_serves_all_is_not_called_not_loaded(recording: Recording, tmp_path: Path) -> None:
    """Case 45, ``L-39``: by `check`, `compact --as-broker` and `repair`, which leaves nothing out."""
    log, case = recording("load-fails") / "log", ("-p", "45")
    told = run("check", log, *case, "--loads-on", "3.9.1").stderr
    assert "offsets partition 45: 3.9.1 logs that the load failed, and serves all of it" in told
    as_broker = run("compact", log, *case, "--as-broker", "--profile", "classic")
    repaired = run("repair", log, *case, "--drop-unloadable", "3.9.1", "--to", tmp_path / "repaired")
    assert repaired.exit_code == 0
    for result in (as_broker, repaired):
        assert "coordinator logs an error once it has loaded it, and serves it: record offset 5, L-39" in result.stderr


def test_the_releases_that_a_name_stands_for_are_said_where_it_matters(recording: Recording) -> None:
    """Case 25 has records of consumer groups, which the Scala coordinator of 3.9 passes over; case 4 fails on both."""
    log = recording("load-fails") / "log"
    words = "3.4.1 stands for all releases up to 3.9 with their default coordinator"
    assert words in run("check", log, "-p", "25").stderr
    assert words not in run("check", log, "-p", "25", "--loads-on", "3.9.1").stderr
    assert words not in run("check", log, "-p", "4").stderr
