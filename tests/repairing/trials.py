"""Trials of `clean` and `repair` under real brokers, on the slow path over all recordings of a release's kind:

    python -m tests.repairing.trials LIBS RELEASE WORK ROTATIONS LOG...      (ROTATIONS: 0,1,2,3 or some of these)

Each log is cleaned, cleaned deeply, repaired, and loses a group or the records that end its load. Partitions of all
four lie side by side under one broker: it loads them, gets new offsets, cleans them, and starts again. What it answers
must be what the log says that was given, without what was asked to go.

One answer is known to differ on 3.9.1, of the untouched log too: group ``tx-tomb-fleet`` of ``kafka-3.9-classic`` has
an offset in a transaction that ends behind a tombstone of the same key. For a Scala load it stands; the broker's own
cleaner goes by the tombstone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from cli.main import main
from offsets_log.broker.recovery import open_log
from offsets_log.disk.folder import OFFSETS_TOPIC
from offsets_log.disk.reader import open_logs
from offsets_log.errors import Damage
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, iter_log
from offsets_log.log_format.segment import Tail
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.releases import release_named
from tests.conftest import json_lines
from tests.coordinator.broker import QUICK, free_port
from tests.repairing.under_broker import Answer, put_under, topic_id

SOURCE = Path(__file__).with_name("Trials.java")
OPERATIONS = ("clean", "deep", "repair", "surgery")
NEW_OFFSET = 18
"""That the broker is given last for each new group."""
SECONDS = 3600


@dataclass(slots=True)
class Given:
    """A log, and what is expected of its partitions.

    Attributes:
        sound: partitions without anything that cannot be read, or that a broker's recovery does not take.
        loads: partitions that load on the release.
    """

    folder: Path
    states: dict[int, CoordinatorState]
    sound: set[int]

    @classmethod
    def of(cls, folder: Path, release: str) -> Given:
        """Read it once."""
        profile = release_named(release).profile
        with open_logs([str(folder)]) as opened:
            logs = {log.offsets_partition: log for log in opened.logs if log.offsets_partition is not None}
            states = {
                partition: finish(replay(iter_events(log), profile, on_damage=lambda damage: None))
                for partition, log in logs.items()
            }
            return cls(folder, states, {partition for partition, log in logs.items() if _is_sound(log)})

    @property
    def partitions(self) -> int:
        """So many the topic had."""
        return next(number for number in (4, 40, 50) if max(self.states) < number)

    def ends_of_loads(self, partition: int) -> list[int]:
        """Offsets of records that end the load."""
        problems = self.states[partition].problems
        return sorted({problem.record_offset for problem in problems if not problem.is_served})

    def answers(self, partition: int) -> set[Answer]:
        """Of the groups that a client finds there."""
        return {
            (
                value.group, value.topic, value.partition, value.committed_offset, value.metadata,
                None if value.leader_epoch == -1 else value.leader_epoch,
            )
            for value in self.states[partition].iter_served()
            if value.committed_offset >= 0 and partition_for(value.group, self.partitions) == partition
        }  # fmt: skip


def _is_sound(log: PartitionLog) -> bool:
    if any(isinstance(item, Damage) or (isinstance(item, Tail) and item.kind == "torn") for _, item in iter_log(log)):
        return False
    bare = replace(log, beside={}, checkpoints=Checkpoints())
    recovered = open_log(bare, stopped_cleanly=False, finds_by_base_offset=True)
    if recovered.refusal is not None or recovered.cuts:
        return False
    return not any(isinstance(event, Damage) for event in iter_events(log))


@dataclass(slots=True)
class Made:
    """What a command made of a log.

    Attributes:
        dropped: groups that are to be answered no more.
        changed: partitions that answer otherwise by what `repair` says.
    """

    folder: Path
    partitions: set[int]
    dropped: set[str] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)


class Trials:
    """The trials of one release."""

    def __init__(self, libs: Path, release: str, work: Path) -> None:
        self.libs, self.release, self.work = libs, release, work
        self.counts: Counter[str] = Counter()
        self.mismatches: list[str] = []
        self._expected: list[tuple[str, set[Answer], set[Answer]]] = []
        self._cases: list[dict[str, Any]] = []
        self._templates: dict[int, Path] = {}
        work.mkdir(parents=True, exist_ok=True)
        self._ports = free_port(), free_port()
        _run("javac", "-cp", f"{libs}/*", "-d", str(work / "classes"), str(SOURCE))

    def add(self, folder: Path, rotations: Sequence[int]) -> None:
        """A log in as many cases: in each another operation made a partition."""
        given = Given.of(folder, self.release)
        template = self._template(given.partitions)
        place = self.work / str(len(self._cases))
        place.mkdir()
        made = {name: self._made(name, given, place / name, topic_id(template)) for name in OPERATIONS}
        for rotation in rotations:
            self._add_case(given, made, rotation, template)

    def _add_case(self, given: Given, made: dict[str, Made], rotation: int, template: Path) -> None:
        data = self.work / f"data-{len(self._cases)}"
        shutil.copytree(template, data)
        expected: set[Answer] = set()
        groups: set[str] = set()
        ends: dict[str, int] = {}
        new = []
        for partition in sorted(given.states):
            operation = OPERATIONS[(partition + rotation) % len(OPERATIONS)]
            one = made[operation]
            if partition not in one.partitions or (partition in one.changed):
                self.counts[f"{operation}: partitions left out"] += 1
                continue
            put_under(data, one.folder, [partition], self.work / f"old-{len(self._cases)}-{partition}")
            answers = given.answers(partition)
            groups |= {group for group, *_ in answers} | {
                group for group in given.states[partition].groups
                if partition_for(group, given.partitions) == partition
            }  # fmt: skip
            expected |= {answer for answer in answers if answer[0] not in one.dropped}
            ends[str(partition)] = given.states[partition].end_offset
            new.append(next(name for n in count() if partition_for(name := f"new {n}", given.partitions) == partition))
            self.counts[f"{operation}: partitions"] += 1
        committed: set[Answer] = {(group, OFFSETS_TOPIC, 0, NEW_OFFSET, "", None) for group in new}
        self._expected.append((f"{given.folder} rotation {rotation}", expected, committed))
        self._cases.append({"data": str(data), "groups": sorted(groups | set(new)), "commits": new, "ends": ends})

    def _made(self, operation: str, given: Given, to: Path, identity: str) -> Made:
        loading = {partition for partition in given.sound if not given.ends_of_loads(partition)}
        words: list[str] = ["--broker", self.release]
        dropped: set[str] = set()
        partitions = loading
        match operation:
            case "deep":
                words.append("--deep")
            case "repair":
                words, partitions = ["--drop-unloadable", self.release], set(given.states)
            case "surgery":
                partitions = given.sound
                for partition in sorted(given.sound):
                    words += [f"--drop-record={partition}:{offset}" for offset in given.ends_of_loads(partition)]
                    named = [group for group, *_ in sorted(given.answers(partition), key=repr) if group.isalnum()]
                    dropped |= set(named[:1]) if partition in loading else set()
                words += [f"--drop-group={group}" for group in sorted(dropped)]
        command = "repair" if operation == "repair" else "clean"
        chosen = [f"-p{partition}" for partition in sorted(partitions)]
        if not chosen:
            return Made(to, set())
        result = CliRunner().invoke(
            main, [command, str(given.folder), *chosen, *words, "--to", str(to), "--topic-id", identity, "-o", "jsonl"]
        )
        assert result.exit_code in (0, 3), (given.folder, operation, result.output, result.exception)
        rows = list(json_lines(result.stdout))
        changed = {row["offsets_partition"] for row in rows if row.get("changed_offsets") or row.get("changed_groups")}
        left = {row["offsets_partition"] for row in rows if row.get("outcome") != "failed"}
        self.counts[f"{operation}: partitions failed"] += len(rows) - len(left)
        return Made(to, left, dropped, changed)

    def run(self) -> None:
        """All that were added; what differs is in `mismatches`."""
        cases, answers = self.work / "cases.json", self.work / "answers.jsonl"
        cases.write_text(json.dumps(self._cases))
        with (self.work / "broker.log").open("wb") as output:
            self._java(output, "Trials", str(self._properties(self._data(4), 4)), str(cases), str(answers))
        for line, (name, expected, committed) in zip(answers.read_text().splitlines(), self._expected, strict=True):
            answered = json.loads(line)
            self.counts["brokers"] += 1
            self.counts["partitions cleaned by the broker"] += answered["cleaned"]
            self.counts["groups"] += len(answered["groups"])
            self._compare(f"{name}, loaded", answered, "first", expected)
            self._compare(f"{name}, cleaned and loaded again", answered, "second", expected | committed)

    def _compare(self, name: str, answered: dict[str, Any], which: str, expected: set[Answer]) -> None:
        found = {tuple(row) for row in answered[which]}
        self.counts[f"offsets compared, {which} start"] += len(expected)
        self.mismatches += [f"{name}: lacks {answer}" for answer in sorted(expected - found, key=repr)]
        self.mismatches += [f"{name}: {answer} too many" for answer in sorted(found - expected, key=repr)]
        self.mismatches += [f"{name}: {failed}" for failed in answered[f"{which}_failed"]]

    # ---------------------------------------------------------------------------------------- brokers

    def _template(self, partitions: int) -> Path:
        """A data directory with an empty topic."""
        if partitions in self._templates:
            return self._templates[partitions]
        data = self._data(partitions)
        properties = self._properties(data, partitions)
        tool = ("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties))
        with (self.work / "template.log").open("ab") as output:
            self._java(output, *tool)
            case = self.work / "template.json"
            case.write_text(json.dumps([{"data": str(data), "groups": ["nobody"], "commits": [], "ends": {}}]))
            self._java(output, "Trials", str(properties), str(case), str(self.work / "template.jsonl"))
        self._templates[partitions] = data
        return data

    def _data(self, partitions: int) -> Path:
        return self.work / f"template-{partitions}"

    def _properties(self, data: Path, partitions: int) -> Path:
        port, controller = self._ports
        settings: dict[str, Any] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": data,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": partitions,
            "offsets.retention.minutes": 2**31 - 1,
            "offsets.retention.check.interval.ms": 9_000_000_000_000,
            "log.roll.ms": 300,
            "log.cleaner.min.cleanable.ratio": 0.0,
            "log.cleaner.backoff.ms": 100,
            "log.cleaner.dedupe.buffer.size": 8 << 20,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
        }
        properties = self.work / f"server-{partitions}.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return properties

    def _java(self, output: Any, *arguments: str) -> None:
        path = f"{self.libs}/*{os.pathsep}{self.work / 'classes'}"
        command = ("java", "-Xmx700m", *QUICK, "-cp", path, *arguments)
        subprocess.run(command, timeout=SECONDS, stdout=output, stderr=subprocess.STDOUT, cwd=self.work, check=True)


def _run(*command: str) -> None:
    subprocess.run(command, timeout=SECONDS, check=True)


def report(trials: Trials) -> Iterable[str]:
    """What was tried, and what differs."""
    for name, number in sorted(trials.counts.items()):
        yield f"{trials.release}: {name}: {number}"
    yield f"{trials.release}: mismatches: {len(trials.mismatches)}"
    yield from trials.mismatches[:200]


if __name__ == "__main__":
    libs, release, work, rotations, *folders = sys.argv[1:]
    tried = Trials(Path(libs), release, Path(work))
    for given in folders:
        tried.add(Path(given), [int(one) for one in rotations.split(",")])
    tried.run()
    sys.stdout.writelines(f"{line}\n" for line in report(tried))
