"""Where share groups start, translated: by construction, from a recording to itself, and between two real brokers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.cluster.admin import Cluster
from offsets_log.restore.plan import decode_plan
from offsets_log.restore.target import Committed
from offsets_log.translation.answers import AT_LEAST, EXACT, Answer, Untold
from offsets_log.translation.share_starts import asked_of
from offsets_log.translation.translated_plan import PlacedOffset, translated_plan
from offsets_log_cli.main import main
from tests.coordinator.broker import Broker, jars, quick
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.restore import live
from tests.restore.empty_cluster import write_tool
from tests.restore.plans import plan_of, row
from tests.translation.test_live import NOT_COPIED, fill
from tests.waiting import PATIENCE_S

__all__ = ["recorded"]

READ = 20
"""So many records the share group has read before."""


def run_of(state: str, first: int, last: int) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "delivery_state": state, "delivery_count": 1}


def share(group: str, start: int | None, *runs: dict[str, Any], topic: str = "orders") -> dict[str, Any]:
    return {
        "group": group, "topic": topic, "partition": 0, "topic_id": "id", "start_offset": start, "lag": 3,
        "status": "initialized", "log_start_offset": 0, "log_end_offset": 50, "start_timestamp_ms": 7,
        "redelivered": [*runs],
    }  # fmt: skip


def place_of(asked: dict[str, Any]) -> PlacedOffset:
    """All is 100 further there, but what is behind 10 moves back to that; one topic is missing."""
    if asked["topic"] == "gone":
        return PlacedOffset("gone", 0, Untold("it is gone"))
    offset = asked["committed_offset"]
    answer = Answer(100 + offset, EXACT, 0) if offset <= 10 else Answer(110, AT_LEAST, offset - 10)
    return PlacedOffset("us.orders", asked["partition"], answer)


def test_starts_and_what_is_done_above_them_are_those_of_the_target() -> None:
    shares = [
        share("gone", 5, topic="gone"),
        share("s", 5, run_of("Acknowledged", 6, 7), run_of("Archived", 9, 11), run_of("Acknowledged", 14, 15)),
        share("unset", None),
    ]
    plan = plan_of(row("g"), share_offsets=shares)
    assert [one["committed_offset"] for one in asked_of(plan)] == [5, 5, 5, 6, 8, 9, 12, 14, 16]
    new = translated_plan(plan, place_of, lambda group: f"{group}2")
    start, unset = new["share_offsets"]
    assert [start[name] for name in ("group", "topic", "start_offset", "topic_id", "lag")] == [
        "s2", "us.orders", 105, None, None
    ]  # fmt: skip
    assert start["redelivered"] == [run_of("Acknowledged", 106, 107), run_of("Archived", 109, 109)]
    assert unset == shares[2]
    assert [(one["group"], one.get("is_share"), one["target_offset"]) for one in new["translation"]] == [
        ("g", None, 105),
        ("s", True, 105),
    ]
    assert [(one["group"], one["reason"]) for one in new["left_out"]] == [("gone", "it is gone")]
    assert [
        (one["group"], one["committed_offset"], "is_share" in one) for one in decode_plan(json.dumps(new).encode(), "p")
    ] == [
        ("g2", 105, False),
        ("s2", 105, True),
    ]


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)


def test_a_copy_translated_to_itself_starts_where_it_does(recorded: Recorded, tmp_path: Path) -> None:
    data = data_directories(recorded("kafka-4.3-one"), "stopped")[0]
    rescued, plan = tmp_path / "rescued", tmp_path / "plan"
    chosen = ("-g", "s-*")  # of the others one is beyond the end, as if the copy had lost what others may seem to be
    assert run("rescue", data, "--to", rescued, "--lag", *chosen).exit_code == 0
    result = run("translate", data, "--target", data, "--to", plan, *chosen)
    assert (result.exit_code, "5 starts of share groups: 5 exact" in result.stderr) == (0, True), result.stderr
    files = sorted(path.name for path in (rescued / "share-groups").iterdir())
    for name in files:
        assert (plan / "share-groups" / name).read_bytes() == (rescued / "share-groups" / name).read_bytes()
    assert len(json.loads((plan / "share-groups" / "offsets.json").read_bytes())) == 2


def starts(real: Broker, group: str) -> dict[int, int]:
    with closing(Cluster(live.server(real), {})) as cluster:
        return {key[1]: value.committed_offset for key, value in cluster.share_groups.offsets(group).items()}


def read_shared(real: Broker, group: str, count: int, *more: str) -> list[int]:
    """What Java's share consumer reads and accepts, as numbers in order; it should be so many."""
    command = ["java", *quick(real.libs), "-cp", f"{real.libs}/*"]
    command += ["org.apache.kafka.tools.consumer.ConsoleShareConsumer", "--bootstrap-server", live.server(real)]
    return live.numbers_read([*command, "--topic", "orders", "--group", group, *more], count)


@pytest.mark.kafka
def test_share_groups_go_on_at_the_right_record(tmp_path: Path) -> None:
    source, target = live.make(tmp_path / "source"), live.make(tmp_path / "target")
    with source.running():
        fill(source, 0)
        live.make_coordinators(source, ["any"])
        with closing(Cluster(live.server(source), {})) as cluster:
            begins = {("orders", number): Committed(NOT_COPIED + 5, None, "") for number in range(live.PARTITIONS)}
            assert cluster.share_groups.commit("s", begins) == {}
        assert len(read_shared(source, "s", READ, "--max-messages", str(READ))) == READ
        left = starts(source, "s")
    unread = [number for start in left.values() for number in range(start, live.RECORDS)]
    with target.running():
        fill(target, NOT_COPIED)
        live.make_coordinators(target, ["any"])
    plan = tmp_path / "plan"
    result = run("translate", source.data, "--target", target.data, "--to", plan)
    assert (result.exit_code, "3 exact" in result.stderr) == (0, True), result.stderr
    rescued = run("rescue", source.data, "--target", target.data, "--to", tmp_path / "judged", "--quiet")
    assert (rescued.exit_code, judged(tmp_path / "judged")) == (3, {("s", True, "another topic")})
    with target.running():
        live.make_coordinators(target, ["any"])
        words = ("--bootstrap-server", live.server(target), "--execute")
        status, rows, said = live.restore(plan / "plan.json", *words)
        assert (status, [one["change"] for one in rows]) == (0, ["new"] * 3), said
        right = {number: start - NOT_COPIED for number, start in left.items()}
        assert starts(target, "s") == right
        for version in ("4.3.0", "4.4.0"):  # one takes times, the other offsets
            with closing(Cluster(live.server(target), {})) as cluster:
                zeros = {("orders", number): Committed(0, None, "") for number in right}
                assert cluster.share_groups.commit("s", zeros) == {}
            follow(plan, target, version)
            assert starts(target, "s") == right
        assert read_shared(target, "s", len(unread)) == sorted(unread)
        again = run("rescue", source.data, *words[:2], "--to", tmp_path / "again", "--quiet")
        assert again.exit_code == 3
        assert ("s", True, "another topic") in judged(tmp_path / "again")


def follow(plan: Path, real: Broker, version: str) -> None:
    """Run the commands of DETAILS.txt for share groups as they stand there, with the tool of a release."""
    write_tool(jars(version), plan / "kafka-share-groups.sh", "ShareGroupCommand")
    text = (plan / "DETAILS.txt").read_text().replace("HOST:PORT", live.server(real))
    commands = re.findall(r"^  (sh share-groups/.*)$", text, re.MULTILINE)
    assert [command.split()[-1] for command in commands] == ["--dry-run", "--execute"]
    for command in commands:
        env = {**os.environ, "PATH": f"{plan}{os.pathsep}{os.environ['PATH']}"}
        ran = subprocess.run(
            ["sh", "-c", command], cwd=plan, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)


def judged(folder: Path) -> set[tuple[str, bool, str]]:
    rows = map(json.loads, (folder / "target.jsonl").read_text().splitlines())
    return {(one["group"], one["is_share"], problem) for one in rows for problem in one["problems"]}
