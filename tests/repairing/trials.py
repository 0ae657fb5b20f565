"""Trials of `clean` and `repair` under real brokers, on the slow path over all recordings of a release's kind:

    python -m tests.repairing.trials LIBS RELEASE WORK ROTATIONS LOG...      (ROTATIONS: 0,1,2,3 or some of these)

Each log is cleaned, cleaned deeply, repaired, and loses a group or the records that end its load. Partitions of all
four lie side by side under one broker, which must not clean yet: it loads them, gets new offsets, cleans them twice,
and starts again. What it answers must be what the log says that was given, without what was asked to go; and after its
cleaning, what the log says that it left.

A broker's cleaning may change what a log answers: it goes by the last record of each key, a load does not always. On
3.9.1 a tombstone in a transaction covers an offset that the load lets stand (``L-18``, ``L-19``), on 4.3 a commit of an
idempotent producer, which the load holds for pending (``J-5``). The offset is gone, or one under a key of type 0 comes
back. A difference after the broker's cleaning is explained if a later record has the key of the offset that is gone, or
if the log that loads shows it too, under one broker more, as it was given. `clean` does the same as a broker's cleaner.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from cli.main import main
from offsets_log.broker.recovery import open_log
from offsets_log.disk.reader import open_logs
from offsets_log.errors import Damage
from offsets_log.events import Event
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, iter_log
from offsets_log.log_format.segment import Tail
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.releases import release_named
from tests.conftest import json_lines
from tests.coordinator.broker import QUICK, free_port
from tests.repairing.under_broker import Answer, put_under, topic_id

SOURCE = Path(__file__).with_name("Trials.java")
OPERATIONS = ("clean", "deep", "repair", "surgery")
UNTOUCHED = "untouched"
ROUNDS = ("clean", "surgery")
"""Operations that do what a broker's cleaner does."""
NEW_OFFSET = 18
"""That the broker is given last for each new group."""
SECONDS = 3600


@dataclass(slots=True)
class Given:
    """A log, and what is expected of its partitions.

    Attributes:
        sound: partitions without anything that cannot be read, or that a broker's recovery does not take.
        mended: states of sound partitions that do not load, without the records that end the load.
        named: groups of each partition's records, gone or not.
        covered: record offsets of each partition whose keys come again: a broker's cleaner drops them.
    """

    folder: Path
    states: dict[int, CoordinatorState]
    sound: set[int]
    mended: dict[int, CoordinatorState]
    covered: dict[int, set[int]]
    named: dict[int, set[str]]

    @classmethod
    def of(cls, folder: Path, release: str) -> Given:
        """Read it once."""
        with _states(folder, release) as (logs, states):
            sound = {partition for partition, log in logs.items() if _is_sound(log)}
            mended = {
                partition: _state(logs[partition], release, without=_ends_of_load(states[partition]))
                for partition in sound
                if _ends_of_load(states[partition])
            }
            covered = {partition: _covered(log) for partition, log in logs.items()}
            return cls(folder, states, sound, mended, covered, {number: _named(log) for number, log in logs.items()})

    @property
    def loading(self) -> set[int]:
        """Sound partitions that load on the release."""
        return self.sound - set(self.mended)

    @property
    def partitions(self) -> int:
        """So many the topic had."""
        return next(number for number in (4, 40, 50) if max(self.states) < number)

    def answers(self, partition: int, operation: str) -> set[Answer]:
        """Of the groups that a client finds there."""
        state = self.states[partition]
        return _answers(
            self.mended.get(partition, state) if operation == "surgery" else state, partition, self.partitions
        )

    def covered_answers(self, partition: int) -> set[Answer]:
        """Those that a broker's cleaner takes away, though the load lets them stand."""
        state, covered = self.states[partition], self.covered[partition]
        committed = tuple(value for value in state.committed if value.record_offset in covered)
        return _answers(replace(state, committed=committed), partition, self.partitions)

    def groups(self, partition: int) -> set[str]:
        """All that a client looks for there."""
        return {group for group in self.named[partition] if partition_for(group, self.partitions) == partition}


@contextmanager
def _states(folder: Path, release: str) -> Iterator[tuple[dict[int, PartitionLog], dict[int, CoordinatorState]]]:
    with open_logs([str(folder)]) as opened:
        logs = {log.offsets_partition: log for log in opened.logs if log.offsets_partition is not None}
        yield logs, {partition: _state(log, release) for partition, log in logs.items()}


def _state(log: PartitionLog, release: str, without: Collection[int] = ()) -> CoordinatorState:
    events = (event for event in iter_events(log) if not (isinstance(event, Event) and event.record.offset in without))
    return finish(replay(events, release_named(release).profile, on_damage=lambda damage: None))


def _covered(log: PartitionLog) -> set[int]:
    newest: dict[bytes, int] = {}
    found = set()
    for event in iter_events(log):
        if isinstance(event, Event) and event.control is None and event.record.key is not None:
            found.add(newest.get(event.record.key, -1))
            newest[event.record.key] = event.record.offset
    return found


def _named(log: PartitionLog) -> set[str]:
    events = (event for event in iter_events(log) if isinstance(event, Event))
    return {event.decoded.group for event in events if event.decoded is not None}


def _ends_of_load(state: CoordinatorState) -> list[int]:
    """Offsets of records that end the load."""
    return sorted({problem.record_offset for problem in state.problems if not problem.is_served})


def _answers(state: CoordinatorState, offsets_partition: int, partitions: int) -> set[Answer]:
    return {
        (
            value.group, value.topic, value.partition, value.committed_offset, value.metadata,
            None if value.leader_epoch == -1 else value.leader_epoch,
        )
        for value in state.iter_served()
        if value.committed_offset >= 0 and partition_for(value.group, partitions) == offsets_partition
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


Difference = tuple[str, Answer]
"""``lacks`` or ``has``, and what."""


@dataclass(slots=True)
class Case:
    """What lies under one broker.

    Attributes:
        operations: operation that made each partition.
        expected: answers to its first question; to its second also ``committed``.
        covered: answers that a round of the broker's cleaner may take away.
    """

    folder: Path
    partitions: int
    operations: dict[int, str]
    data: Path
    expected: set[Answer]
    committed: set[Answer]
    covered: set[Answer] = field(default_factory=set)

    def named(self, difference: Difference) -> str:
        """A line that says where it is."""
        kind, answer = difference
        partition = partition_for(answer[0], self.partitions)
        return f"{self.folder} partition {partition} ({self.operation_of(difference)}): {kind} {answer}"

    def operation_of(self, difference: Difference) -> str | None:
        """That made its partition."""
        return self.operations.get(partition_for(difference[1][0], self.partitions))


class Trials:
    """The trials of one release."""

    def __init__(self, libs: Path, release: str, work: Path) -> None:
        self.libs, self.release, self.work = libs, release, work
        self.counts: Counter[str] = Counter()
        self.mismatches: list[str] = []
        self.explained: list[str] = []
        self._cases: list[Case] = []
        self._questions: list[dict[str, Any]] = []
        self._by_cleaning: dict[Path, set[Difference]] = {}
        self._templates: dict[int, Path] = {}
        work.mkdir(parents=True, exist_ok=True)
        self._ports = free_port(), free_port()
        _run("javac", "-cp", f"{libs}/*", "-d", str(work / "classes"), str(SOURCE))

    def add(self, folder: Path, rotations: Sequence[int]) -> None:
        """A log as it is, and in as many cases more: in each another operation made a partition."""
        given = Given.of(folder, self.release)
        template = self._template(given.partitions)
        place = self.work / str(len(self._cases))
        place.mkdir()
        made = {name: self._made(name, given, place / name, topic_id(template)) for name in OPERATIONS}
        made[UNTOUCHED] = self._untouched(given, place / UNTOUCHED, topic_id(template))
        self._add_case(given, made, dict.fromkeys(given.states, UNTOUCHED), template)
        for rotation in rotations:
            operations = {partition: OPERATIONS[(partition + rotation) % len(OPERATIONS)] for partition in given.states}
            self._add_case(given, made, operations, template)

    def _add_case(self, given: Given, made: dict[str, Made], operations: dict[int, str], template: Path) -> None:
        number = len(self._cases)
        case = Case(given.folder, given.partitions, {}, self.work / f"data-{number}", set(), set())
        shutil.copytree(template, case.data)
        groups: set[str] = set()
        for partition, operation in sorted(operations.items()):
            one = made[operation]
            if partition not in one.partitions or (partition in one.changed):
                self.counts[f"{operation}: partitions left out"] += 1
                continue
            put_under(case.data, one.folder, [partition], self.work / f"old-{number}-{partition}")
            answers = given.answers(partition, operation)
            groups |= given.groups(partition)
            case.covered |= given.covered_answers(partition)
            case.operations[partition] = operation
            case.expected |= {answer for answer in answers if answer[0] not in one.dropped}
            self.counts[f"{operation}: partitions"] += 1
        new = [
            next(name for n in count() if partition_for(name := f"new {n}", given.partitions) == partition)
            for partition in case.operations
        ]
        case.committed = {(group, OFFSETS_TOPIC, 0, NEW_OFFSET, "", None) for group in new}
        self._cases.append(case)
        ends = {str(partition): given.states[partition].end_offset for partition in case.operations}
        question = {"data": str(case.data), "groups": sorted(groups | set(new)), "commits": new, "ends": ends}
        self._questions.append(question)

    def _untouched(self, given: Given, to: Path, identity: str) -> Made:
        """Segments alone: a broker that stopped without order makes the rest anew."""
        to.mkdir()
        for path in given.folder.glob("*-checkpoint"):
            shutil.copy(path, to)
        for partition in given.loading:
            name = f"{OFFSETS_TOPIC}-{partition}"
            (to / name).mkdir()
            for path in (given.folder / name).glob("*.log"):
                shutil.copyfile(path, to / name / path.name)
            (to / name / PARTITION_METADATA).write_text(f"version: 0\ntopic_id: {identity}")
        return Made(to, given.loading)

    def _made(self, operation: str, given: Given, to: Path, identity: str) -> Made:
        words: list[str] = ["--broker", self.release]
        dropped: set[str] = set()
        partitions = given.loading
        match operation:
            case "deep":
                words.append("--deep")
            case "repair":
                words, partitions = ["--drop-unloadable", self.release], set(given.states)
            case "surgery":
                partitions = given.sound
                for partition in sorted(given.mended):
                    ends = _ends_of_load(given.states[partition])
                    words += [f"--drop-record={partition}:{offset}" for offset in ends]
                for partition in sorted(given.loading):
                    answers = sorted(given.answers(partition, operation), key=repr)
                    dropped |= set([group for group, *_ in answers if group.isalnum()][:1])
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
        """All that were added; what differs is in `mismatches` and `explained`."""
        questions, answers = self.work / "questions.json", self.work / "answers.jsonl"
        questions.write_text(json.dumps(self._questions))
        with (self.work / "broker.log").open("wb") as output:
            self._java(output, "Trials", str(self._properties(self._data(4), 4)), str(questions), str(answers))
        for line, case in zip(answers.read_text().splitlines(), self._cases, strict=True):
            answered = json.loads(line)
            self.counts["brokers"] += 1
            self.counts["partitions cleaned by the broker"] += answered["cleaned"]
            self.counts["groups"] += len(answered["groups"])
            self._compare(case, answered)

    def _compare(self, case: Case, answered: dict[str, Any]) -> None:
        first, second = ({tuple(row) for row in answered[which]} for which in ("first", "second"))
        by_cleaning = _differences(second, case.expected | case.committed)
        explained = self._by_cleaning.setdefault(case.folder, by_cleaning) | {("lacks", one) for one in case.covered}
        self.counts["offsets compared, first start"] += len(case.expected)
        self.counts["offsets compared, second start"] += len(case.expected | case.committed)
        loaded = _differences(first, case.expected)
        by_round = {one for one in loaded & explained if case.operation_of(one) in ROUNDS}
        for stage, found in (
            ("loaded", loaded - by_round),
            ("cleaned and loaded again", by_cleaning - explained),
            ("loaded from what the broker left", _differences(second, self._left(case))),
        ):
            self.mismatches += [f"{case.named(one)}, {stage}" for one in sorted(found, key=repr)]
        self.explained += [case.named(one) for one in sorted((by_cleaning & explained) | by_round, key=repr)]
        self.mismatches += [
            f"{case.folder}, {which}: {failed}"
            for which in ("first", "second")
            for failed in answered[f"{which}_failed"]
        ]

    def _left(self, case: Case) -> set[Answer]:
        """What the log says that the broker left."""
        with _states(case.data, self.release) as (_, states):
            return set().union(*(_answers(states[partition], partition, case.partitions) for partition in states))

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
            question = self.work / "template.json"
            question.write_text(json.dumps([{"data": str(data), "groups": ["nobody"], "commits": [], "ends": {}}]))
            self._java(output, "Trials", str(properties), str(question), str(self.work / "template.jsonl"))
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
            "log.cleaner.min.compaction.lag.ms": 2**63 - 1,
            "log.cleaner.delete.retention.ms": 0,
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


def _differences(found: set[Answer], expected: set[Answer]) -> set[Difference]:
    return {("lacks", answer) for answer in expected - found} | {("has", answer) for answer in found - expected}


def _run(*command: str) -> None:
    subprocess.run(command, timeout=SECONDS, check=True)


def report(trials: Trials) -> Iterable[str]:
    """What was tried, and what differs."""
    for name, number in sorted(trials.counts.items()):
        yield f"{trials.release}: {name}: {number}"
    yield f"{trials.release}: differences by the broker's own cleaning: {len(trials.explained)}"
    yield from trials.explained[:200]
    yield f"{trials.release}: mismatches: {len(trials.mismatches)}"
    yield from trials.mismatches[:200]


if __name__ == "__main__":
    libs, release, work, rotations, *folders = sys.argv[1:]
    tried = Trials(Path(libs), release, Path(work))
    for given in folders:
        tried.add(Path(given), [int(one) for one in rotations.split(",")])
    tried.run()
    sys.stdout.writelines(f"{line}\n" for line in report(tried))
