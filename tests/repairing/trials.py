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
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.replay.partition_for import partition_for
from offsets_log_cli.main import main
from tests.conftest import json_lines
from tests.coordinator.broker import compiled, format_data, free_port, quick
from tests.repairing.trial_cases import Case, Difference, Given, Made, answers_of, ends_of_load, states_of
from tests.repairing.under_broker import Answer, put_under, topic_id

SOURCE = Path(__file__).with_name("Trials.java")
OPERATIONS = ("clean", "deep", "repair", "surgery")
UNTOUCHED = "untouched"
ROUNDS = ("clean", "surgery")
"""Operations that do what a broker's cleaner does."""
NEW_OFFSET = 18
"""That the broker is given last for each new group."""
SECONDS = 3600
AT_ONCE = 2
"""Brokers that are asked beside each other: each waits most of the time, for its own cleaner."""


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
        self._ports = [(free_port(), free_port()) for _ in range(AT_ONCE)]

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
        """Segments alone: a broker that stopped without order makes the rest again."""
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
                    ends = ends_of_load(given.states[partition])
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
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = [*pool.map(self._asked, range(AT_ONCE))]
        for i, case in enumerate(self._cases):
            answered = found[i % AT_ONCE][i // AT_ONCE]
            self.counts["brokers"] += 1
            self.counts["partitions cleaned by the broker"] += answered["cleaned"]
            self.counts["groups"] += len(answered["groups"])
            self._compare(case, answered)

    def _asked(self, number: int) -> list[dict[str, Any]]:
        """What brokers answer one after the other, over every other log that was added."""
        asked = self._questions[number::AT_ONCE]
        questions, answers = self.work / f"questions-{number}.json", self.work / f"answers-{number}.jsonl"
        questions.write_text(json.dumps(asked))
        properties = self._properties(self._data(4), 4, number)
        with (self.work / f"broker-{number}.log").open("wb") as output:
            self._java(output, "Trials", str(properties), str(questions), str(answers))
        found = [*json_lines(answers.read_text())]
        assert len(found) == len(asked)
        return found

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
        with states_of(case.data, self.release) as (_, states):
            return set().union(*(answers_of(states[partition], partition, case.partitions) for partition in states))

    # ---------------------------------------------------------------------------------------- brokers

    def _template(self, partitions: int) -> Path:
        """A data directory with an empty topic."""
        if partitions in self._templates:
            return self._templates[partitions]
        data = self._data(partitions)
        format_data(self.libs, data)
        properties = self._properties(data, partitions)
        with (self.work / "template.log").open("ab") as output:
            question = self.work / "template.json"
            question.write_text(json.dumps([{"data": str(data), "groups": ["nobody"], "commits": [], "ends": {}}]))
            self._java(output, "Trials", str(properties), str(question), str(self.work / "template.jsonl"))
        self._templates[partitions] = data
        return data

    def _data(self, partitions: int) -> Path:
        return self.work / f"template-{partitions}"

    def _properties(self, data: Path, partitions: int, number: int = 0) -> Path:
        port, controller = self._ports[number]
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
        properties = self.work / f"server-{partitions}-{number}.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return properties

    def _java(self, output: Any, *arguments: str) -> None:
        path = f"{self.libs}/*{os.pathsep}{compiled(self.libs, SOURCE)}"
        command = ("java", "-Xmx700m", *quick(self.libs), "-cp", path, *arguments)
        subprocess.run(command, timeout=SECONDS, stdout=output, stderr=subprocess.STDOUT, cwd=self.work, check=True)


def _differences(found: set[Answer], expected: set[Answer]) -> set[Difference]:
    return {("lacks", answer) for answer in expected - found} | {("has", answer) for answer in found - expected}


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
