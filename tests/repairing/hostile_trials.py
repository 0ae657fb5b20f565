"""Trials of `repair` and `clean` over mutated logs, under Kafka's own DumpLogSegments and real brokers:

    python -m tests.repairing.hostile_trials LIBS RELEASE WORK LOGS SEED

Logs are made in rounds, one for each offsets partition to which recorded groups belong. `repair` gets all of them, the
other commands in turn. What a command made of a round is one data directory: half of them the broker recovers, of the
others it takes indexes and snapshots as they are. What must hold:

- DumpLogSegments finds batches, indexes and offsets as they are read here;
- the broker starts, loads what is said to load and refuses the rest, and answers as `compact --as-broker`;
- it leaves every segment as it was, and recovers the indexes that `repair` wrote.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from offsets_log.broker.outcome import EMPTY, UNKNOWN_SERVER_ERROR, on_brokers
from offsets_log.events import Event
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.java_text import REPLACEMENT
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.pipeline import iter_events
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.releases import release_named
from offsets_log_cli.main import main
from tests.conftest import json_lines
from tests.coordinator import broker
from tests.fuzz.cleaned import cut_at_batches, hostile_logs
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.repairing.dumped import Dump, files_of
from tests.repairing.repaired import segments_of
from tests.repairing.trial_cases import states_of
from tests.repairing.under_broker import put_under, topic_id

SOURCE = Path(__file__).with_name("Hostile.java")
PARTITIONS = 50
GIVEN, REPAIR = "given", "repair"
OPERATIONS = {
    REPAIR: (GIVEN, "repair"),
    "repair for a release": (GIVEN, "repair", "--drop-unloadable", "{release}"),
    "clean": (GIVEN, "clean", "--broker", "{release}"),
    "clean what was repaired": (REPAIR, "clean", "--broker", "{release}"),
    "clean --deep": (GIVEN, "clean", "--broker", "{release}", "--deep"),
    "clean --deep what was repaired": (REPAIR, "clean", "--broker", "{release}", "--deep"),
}
"""Name → of what, and the command."""
WHOLE = {name for name in OPERATIONS if name != "clean"}
"""Those that leave no damage: a round copies what it does not reach."""
SECONDS = 3600
UNSET = -1
"""A leader epoch that is none."""
ANSWERED = ("group", "topic", "partition", "committed_offset", "metadata")
LEFT = (".log", ".index", ".timeindex", ".txnindex")
"""Suffixes of what a broker leaves as it is, or makes again alike."""


def groups_in(log: PartitionLog) -> set[str]:
    events = (event for event in iter_events(log) if isinstance(event, Event))
    return {event.decoded.group for event in events if event.decoded is not None and event.decoded.group is not None}


def is_asked(group: str, partition: int) -> bool:
    """Whether clients ask for a group there."""
    return partition_for(group, PARTITIONS) == partition


@cache
def seeds_by_partition() -> dict[int, list[RecordBatch]]:
    """Recorded batches by the partitions in which a client finds one of their groups."""
    found: dict[int, list[RecordBatch]] = defaultdict(list)
    for batch in seeds_of(recorded_segments()):
        groups = groups_in(PartitionLog(0, (Segment("", 0, batch.raw),)))
        for partition in {partition_for(group, PARTITIONS) for group in groups}:
            found[partition].append(batch)
    return dict(sorted(found.items()))


def hostile_log(seeds: Sequence[RecordBatch], seed: int) -> Sequence[Segment]:
    """Segments that begin at batches whose offsets mostly rise, or of any names and bytes."""
    dice = random.Random(seed)
    if dice.random() < 0.3:
        return segments_of(next(hostile_segments(seeds, seed)), dice)
    data = next(hostile_logs(seeds, seed, generated=0.1))
    return cut_at_batches(data, dice)[0].segments


@dataclass(slots=True)
class Case:
    """A data directory with what a command made of a round.

    Attributes:
        changed: rows of the command for partitions of which it says that they answer otherwise than before.
        expected: offsets that are answered.
        refused: groups that are refused, and why.
        is_listed: whether the broker lists its groups: it does not if a partition's answers are errors (``D-13``).
        listed: groups of all partitions that load, at home or not.
        states: of those, one for each partition.
        unsure: groups with members, which may leave before the broker is asked; of several partitions, those of which
            the first that is loaded counts.
        written: segments and indexes as they lay there.
    """

    operation: str
    data: Path
    is_recovered: bool
    partitions: list[int]
    groups: set[str] = field(default_factory=set)
    expected: set[tuple[Any, ...]] = field(default_factory=set)
    refused: set[tuple[str, str]] = field(default_factory=set)
    is_listed: bool = True
    listed: set[tuple[str, str]] = field(default_factory=set)
    states: set[tuple[str, str]] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    written: dict[Path, bytes] = field(default_factory=dict)

    def folders(self) -> Iterator[Path]:
        for partition in self.partitions:
            yield self.data / f"{OFFSETS_TOPIC}-{partition}"


class HostileTrials:
    """The trials of one release."""

    def __init__(self, libs: Path, release: str, work: Path) -> None:
        self.libs, self.release, self.work = libs, release, work
        self.profile = release_named(release).profile
        self.counts: Counter[str] = Counter()
        self.mismatches: list[str] = []
        self._cases: list[Case] = []
        (work / "template").mkdir(parents=True)
        self._broker = broker.Broker(libs, work / "template", PARTITIONS)
        self._java("load", [{"data": str(self._broker.data), "groups": ["nobody"]}], self._broker.properties)

    def add(self, seed: int, partitions: int = PARTITIONS, operations: Sequence[str] = tuple(OPERATIONS)) -> None:
        """A round of logs, and what the commands make of it."""
        place = self.work / f"round-{seed}"
        for partition, seeds in [*seeds_by_partition().items()][:partitions]:
            folder = place / GIVEN / f"{OFFSETS_TOPIC}-{partition}"
            folder.mkdir(parents=True)
            for segment in hostile_log(seeds, seed * PARTITIONS + partition):
                (folder / segment.file).write_bytes(segment.buffer)
            self.counts["logs"] += 1
        for operation in operations:
            self._add_case(place, operation, seed)

    def _add_case(self, place: Path, operation: str, seed: int) -> None:
        source, *words = OPERATIONS[operation]
        words = [word.format(release=self.release) for word in words]
        identity = topic_id(self._broker.data)
        to = place / operation
        rows = self._command(*words, place / source, "--to", to, "--topic-id", identity)
        made = sorted(row["offsets_partition"] for row in rows if row.get("outcome") not in ("failed", "aborted"))
        self.counts[f"{operation}: logs"] += len(made)
        self.counts[f"{operation}: logs refused"] += len(rows) - len(made)
        if operation.startswith(REPAIR):
            self.counts[f"{operation}: pieces left out"] += sum(
                one["pieces"] for row in rows for one in row["left_out"]
            )
        case = Case(operation, to.with_name(f"{operation} data"), (seed + len(self._cases)) % 2 == 0, made)
        shutil.copytree(self._broker.data, case.data)
        put_under(case.data, to, made, to.with_name(f"{operation} old"), is_recovered=case.is_recovered)
        self._expect(case)
        self._cases.append(case)

    def _command(self, *words: str | Path) -> list[dict[str, Any]]:
        result = CliRunner().invoke(main, [*map(str, words), "--quiet", "-o", "jsonl"])
        assert result.exit_code in (0, 3), (words, result.output, result.exception)
        return [*json_lines(result.stdout)]

    def _expect(self, case: Case) -> None:
        """What is said of the directory before a broker sees it."""
        stop, is_one_cache = not case.is_recovered, self.profile.answers_from_one_cache
        found_in: Counter[str] = Counter()
        with states_of(case.data, self.release) as (logs, _):
            for partition in case.partitions:
                outcome = on_brokers(logs[partition], [self.profile], [stop])[stop][self.profile]
                assert outcome.starts, (case.data, outcome)
                groups = {group for group in groups_in(logs[partition]) if is_one_cache or is_asked(group, partition)}
                groups.add(next(name for n in count() if is_asked(name := f"nobody {n}", partition)))
                case.groups |= groups
                if outcome.answers not in (None, EMPTY):
                    case.refused |= {(group, outcome.answers.upper()) for group in groups}
                self.counts[f"{case.operation}: loads that fail"] += outcome.answers is not None
                case.is_listed &= outcome.answers != UNKNOWN_SERVER_ERROR
                for group in outcome.state.groups.values():
                    found_in[group.group_id] += 1
                    case.listed.add((group.group_id, group.kind))
                    case.states.add((group.group_id, group.state(self.profile)))
                    case.unsure |= {group.group_id} if group.members else set()
        if is_one_cache:
            several = {group for group, times in found_in.items() if times > 1}
            case.unsure |= several
            case.groups -= several
        case.groups = {group for group in case.groups if REPLACEMENT not in group}
        case.refused = {row for row in case.refused if row[0] in case.groups}
        for row in self._command("compact", case.data, "--as-broker", "--profile", self.profile.name):
            if row["group"] in case.groups and is_asked(row["group"], row["offsets_partition"]):
                epoch = UNSET if row["leader_epoch"] is None else row["leader_epoch"]
                case.expected.add((*(row[name] for name in ANSWERED), epoch))
        case.written = {path: path.read_bytes() for folder in case.folders() for path in folder.iterdir()}

    # ---------------------------------------------------------------------------------------- Kafka

    def run(self) -> None:
        """All that were added; what differs is in `mismatches`."""
        dumped = [(case, folder) for case in self._cases for folder in case.folders()]
        found = self._java("dump", [files_of(folder) for _, folder in dumped])
        for (case, folder), told in zip(dumped, found, strict=True):
            self._compare_dump(case, folder, told)
        questions = [{"data": str(case.data), "groups": sorted(case.groups)} for case in self._cases]
        answers = self._java("load", questions, self._broker.properties)
        for case, answered in zip(self._cases, answers, strict=True):
            self._compare_load(case, answered)

    def _java(self, mode: str, asked: Sequence[Any], *words: Path) -> list[dict[str, Any]]:
        questions, answers = self.work / f"{mode}.json", self.work / f"{mode}.jsonl"
        questions.write_text(json.dumps(asked))
        path = f"{self.libs}/*{os.pathsep}{broker.compiled(self.libs, SOURCE)}"
        java = ("java", "-Xmx700m", *broker.quick(self.libs), "-cp", path, SOURCE.stem)
        with (self.work / f"{mode}.log").open("wb") as output:
            command = [*map(str, (*java, mode, *words, questions, answers))]
            subprocess.run(command, timeout=SECONDS, stdout=output, stderr=subprocess.STDOUT, cwd=self.work, check=True)
        return [*json_lines(answers.read_text())]

    def _differ(self, case: Case | Path, what: str, found: Any, expected: Any) -> None:
        where = case if isinstance(case, Path) else f"{case.data} ({'un' if case.is_recovered else ''}clean)"
        self.mismatches += [f"{where}: {what}: has {one!r}" for one in sorted(found - expected, key=repr)]
        self.mismatches += [f"{where}: {what}: lacks {one!r}" for one in sorted(expected - found, key=repr)]

    def _compare_load(self, case: Case, answered: dict[str, Any]) -> None:
        self.counts["brokers"] += 1
        self.counts["folders loaded"] += len(case.partitions)
        self.counts["offsets"] += len(case.expected)
        self.counts["groups refused"] += len(case.refused)
        self._differ(case, "offsets", {tuple(row) for row in answered["offsets"]}, case.expected)
        self._differ(case, "refused", {tuple(row) for row in answered["failed"]}, case.refused)
        self._differ(
            case, "listing fails", {answered["listing"]}, {"NONE" if case.is_listed else UNKNOWN_SERVER_ERROR.upper()}
        )
        if case.is_listed:
            listed = [tuple(row) for row in answered["listed"]]
            self.counts["groups listed"] += len(listed)
            self._differ(case, "listed", {(group, kind) for group, kind, *_ in listed}, case.listed)
            states = {(group, state) for group, *_, state in listed}
            found, expected = ({one for one in some if one[0] not in case.unsure} for some in (states, case.states))
            self._differ(case, "states", found, expected)
        for folder in case.folders():
            self._compare_files(case, folder)

    def _compare_files(self, case: Case, folder: Path) -> None:
        """The broker may append to the last segment; the indexes of a round are not those of a recovery."""
        for path, data in case.written.items():
            if path.parent == folder and path.suffix in LEFT:
                self.counts["segments and indexes after brokers"] += 1
                is_alike = path.suffix == ".log" or not case.is_recovered or case.operation.startswith(REPAIR)
                if is_alike:
                    self._differ(path, "begins", {path.read_bytes()[: len(data)]}, {data})

    def _compare_dump(self, case: Case, folder: Path, told: dict[str, Any]) -> None:
        expected, found = Dump.of(folder), Dump.told(told["files"]["output"], told["files"]["errors"])
        self.counts["folders dumped"] += 1
        self.counts["batches dumped"] += len(expected.batches)
        self.counts["records dumped"] += len(expected.records)
        failures = {what: told[what]["failure"] for what in ("files", "indexes") if "failure" in told[what]}
        if expected.is_damaged and case.operation not in WHOLE:
            self.counts["folders dumped with damage that a round copies"] += 1
            return
        assert not expected.is_damaged, folder
        self._differ(folder, "failures", set(failures.items()), set())
        self._differ(folder, "batches", found.batches, expected.batches)
        self._differ(folder, "records", found.records, expected.records)
        self._differ(folder, "gaps", found.gaps, expected.gaps)
        self._differ(folder, "times", found.times - expected.times, set())
        complaints = {*found.complaints, *told["indexes"]["errors"].splitlines()}
        own = {line for line in complaints if line.startswith("log4j:")}  # that nobody told 3.9 where to log
        self._differ(folder, "complaints", complaints - own, set())


def report(trials: HostileTrials) -> Iterable[str]:
    """What was tried, and what differs."""
    for name, number in sorted(trials.counts.items()):
        yield f"{trials.release}: {name}: {number}"
    yield f"{trials.release}: mismatches: {len(trials.mismatches)}"
    yield from trials.mismatches[:200]


if __name__ == "__main__":
    libs, release, work, logs, seed = sys.argv[1:]
    tried = HostileTrials(Path(libs), release, Path(work))
    for number in range(int(logs) // PARTITIONS):
        tried.add(int(seed) + number)
    tried.run()
    sys.stdout.writelines(f"{line}\n" for line in report(tried))
