"""Every recorded damage against what the broker did: does it start, to which end, does the load end, what is served."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.broker.outcome import on_brokers
from offsets_log.broker.shutdowns import outcomes_by_shutdown
from offsets_log.checking.bulk_loads import BulkLoad, replay_loads
from offsets_log.disk.reader import open_logs
from offsets_log.events import EVERYTHING, Until
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.profile import PROFILES as PROFILES_OF_OPTIONS
from offsets_log.replay.profile import RELEASES
from offsets_log.replay.releases import release_named
from offsets_log_cli.main import main
from tests.conftest import read_json_lines, unpack_once

HERE = Path(__file__).parent
PROFILES = {"4.3.0": "modern", "3.9.1": "classic"}
"""Release → the profile of the newest release that did the same in all cases."""
ALIKE = {"4.3.0": ("4.3.0", "4.4.0"), "3.9.1": ("3.9.1",)}
"""Release of the recorded verdicts → all releases that came to them: 4.4.0 was started over the same folders."""
FOLDERS = (
    "clean-501-1-3.9.1",
    "clean-501-1-4.3.0",
    "clean-502-1-3.9.1",
    "clean-502-1-4.3.0",
    "recovery-point-501-1-4.3.0",
    "recovery-point-502-1-4.3.0",
    "unclean-501-1-4.3.0",
    "unclean-502-1-4.3.0",
    "unclean-no-index-501-1-4.3.0",
    "unclean-no-index-502-1-4.3.0",
)

ASKED_OF = {name: (name.rpartition("-")[2],) for name in FOLDERS if name.startswith("clean-")}
"""Folders that one release alone was started over."""

Case = dict[str, Any]
Damaged = Callable[[str], tuple[Path, list[Case]]]


@pytest.fixture(scope="session")
def damaged(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Damaged:
    """``damaged(name)`` is a data directory and the cases recorded with it."""
    folder = unpack_once(HERE / "damaged.tar.xz", tmp_path_factory, request)
    cases = read_json_lines(folder / "verdicts.jsonl")
    return lambda name: (folder / name, [case for case in cases if case["data"] == f"{name}.tar.gz"])


def run(*args: str) -> Result:
    result = CliRunner().invoke(main, [*args, "--quiet"])
    assert result.exit_code == 3, result.stderr
    return result


def rows_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.split("\n") if line]


def test_every_case_is_compared(damaged: Damaged) -> None:
    cases = [case for name in FOLDERS for case in damaged(name)[1]]
    assert len(cases) == 640
    assert Counter(case["load"] for case in cases) == {"ok": 368, "failed": 248, "none": 22, "never ends": 2}


@pytest.mark.parametrize("name", FOLDERS)
def test_verdicts_are_the_brokers(name: str, damaged: Damaged) -> None:
    """``D-2`` to ``D-10``; what the data directory holds beside the segments tells how the broker was stopped."""
    folder, cases = damaged(name)
    rows = rows_of(run("check", str(folder), "--loads-on", "3.9.1,4.3.0,4.4.0", "-o", "jsonl"))
    verdicts: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        if row["kind"] == "load":
            key = (row["offsets_partition"], row["releases"][0])
            assert key not in verdicts, "one stop is told, or both come to the same"
            verdicts[key] = row
    for case, release in ((one, release) for one in cases for release in ALIKE[one["release"]]):
        verdict = verdicts[case["partition"], release]
        assert verdict["starts"] == case["started"], case["case"]
        assert verdict["ends"] == (case["load"] != "never ends"), case["case"]
        assert verdict["ok"] == (case["load"] == "ok"), case["case"]
        assert verdict["log_end_offset"] == case["log_end_offset"], case["case"]
        if not case["offsets"]:
            assert verdict["served"] == "nothing", case["case"]


@pytest.mark.parametrize(
    ("name", "release", "command"),
    [
        *((name, release, "compact") for name in FOLDERS for release in ASKED_OF.get(name, PROFILES)),
        *(("recovery-point-501-1-4.3.0", release, "rebuild") for release in PROFILES),
    ],
)
def test_offsets_as_broker_are_what_it_answered(name: str, release: str, command: str, damaged: Damaged) -> None:
    """``D-1``, ``D-11``, ``D-13``; of a group with a damaged name, its own coordinator's answer."""
    folder, cases = damaged(name)
    arguments = [command, str(folder), "--as-broker", "--profile", PROFILES[release], "-o", "jsonl"]
    result = run(*arguments, *(["--table", "offsets"] if command == "rebuild" else []))
    served: dict[int, list[list[Any]]] = {}
    for row in rows_of(result):
        names = ("group", "topic", "partition", "committed_offset", "leader_epoch", "metadata")
        served.setdefault(row["offsets_partition"], []).append([row[name] for name in names])
    asked = [case for case in cases if case["release"] == release and case["started"]]
    assert asked
    for case in asked:
        answered = [row for row in case["offsets"] if len(row) == 6]
        assert sorted(served.get(case["partition"], []), key=key) == sorted(answered, key=key), case["case"]


def test_more_damages_are_what_brokers_made_of_them(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    """Indexes, snapshots, checkpoints, leftovers of a cleaning, segments to split; several damages at once."""
    folder = unpack_once(HERE / "more.tar.xz", tmp_path_factory, request)
    cases = read_json_lines(folder / "verdicts.jsonl")
    for name in sorted({case["data"].removesuffix(".tar.gz") for case in cases}):
        with open_logs([str(folder / name)]) as disk:
            # each damage that ends a start was under a broker of its own
            logs = {log.offsets_partition: replace(log, at_start=None) for log in disk.logs}
            for case in (case for case in cases if case["data"] == f"{name}.tar.gz"):
                profile = release_named(case["release"]).profile
                outcomes = outcomes_by_shutdown(logs[case["partition"]], (profile,), is_damaged=True)
                for outcome in (by_profile[profile] for by_profile in outcomes.values()):
                    assert outcome.starts == case["started"], case["case"]
                    assert outcome.ends == (case["load"] != "never ends"), case["case"]
                    assert outcome.ok == (case["load"] == "ok"), case["case"]
                    if case["started"]:
                        assert outcome.opened.start_offset == case["log_start_offset"], case["case"]
                        assert outcome.opened.end_offset == case["log_end_offset"], case["case"]
                        served = [
                            [it.group, it.topic, it.partition, it.committed_offset, it.leader_epoch, it.metadata]
                            for it in outcome.state.iter_served()
                        ]
                        answered = [row for row in case["offsets"] if len(row) == 6]
                        assert sorted(served, key=key) == sorted(answered, key=key), case["case"]
    assert len(cases) == 88


def test_releases_and_stops_that_share_a_replay_are_as_alone(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    """Also where offsets go back, so that a later batch has the lower base offset."""
    folder = unpack_once(HERE / "more.tar.xz", tmp_path_factory, request)
    profiles = tuple(dict.fromkeys(RELEASES.values()))
    with open_logs([str(folder / "unclean-no-index-612-1-4.3.0")]) as disk:
        for log in disk.logs:
            for until in (EVERYTHING, Until(record_offset=47)):
                together = on_brokers(log, profiles, (True, False), until=until)
                for stop, by_profile in together.items():
                    for profile, outcome in by_profile.items():
                        alone = on_brokers(log, (profile,), (stop,), until=until)[stop][profile]
                        assert replace(outcome, opened=alone.opened) == alone, profile.name
                        assert outcome.state == alone.state, profile.name


@pytest.mark.parametrize("name", ["unclean-no-index-501-1-4.3.0", "clean-502-1-4.3.0"])
def test_loads_in_bulk_are_as_those_record_by_record(name: str, damaged: Damaged) -> None:
    """By all releases and after both stops; also where only some of the loads are plain enough for kernels."""
    profiles, in_bulk = tuple(dict.fromkeys(RELEASES.values())), 0
    with open_logs([str(damaged(name)[0])]) as disk:
        for log in disk.logs[::3]:
            expected = on_brokers(log, profiles, (True, False))
            found = on_brokers(log, profiles, (True, False), in_bulk=replay_loads)
            for stop, by_profile in expected.items():
                for profile, outcome in by_profile.items():
                    bulk = found[stop][profile]
                    assert replace(bulk, opened=outcome.opened) == outcome, profile.name
                    assert bulk.opened.end_offset == outcome.opened.end_offset
                    assert bulk.opened.cuts == outcome.opened.cuts
                    assert dict(bulk.served()) == dict(outcome.served()), profile.name
                    in_bulk += isinstance(bulk.replayed, BulkLoad)
                    if profile in PROFILES_OF_OPTIONS.values():
                        assert held(bulk.state) == held(outcome.state), profile.name
    assert in_bulk


def held(state: CoordinatorState) -> tuple[Any, ...]:
    return state.groups, set(state.committed), set(state.pending), state.failure, state.end_offset, state.topic_names


def key(row: list[Any]) -> tuple[str, str, int]:
    return row[0], row[1], row[2]
