"""What tasks answer is the local engine's answer and the brokers': every recording, both coordinators, any cutting.

These are the functions that tasks run, in this process; `test_source.py` and `test_programs.py` have Spark run them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import offsets_log as ol
from benchmarks.generate import Options, generate
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.scan.reading import Seen
from offsets_log.columnar.shuffle.packed import join, pack
from offsets_log.coordinator_document import Memory
from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from offsets_log.log_format.primitives import Uuid
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.profile import CLASSIC, MODERN, PROFILES
from offsets_log.rows.groups import nested_member
from offsets_log.rows.survey import Survey
from offsets_log_cli.main import main as offsets_log
from spark_jobs.answers import OneLog, Told, Written, rebuilt, rows
from spark_jobs.driver import parts_to_read, plan_reading
from spark_jobs.levels import LEVELS
from spark_jobs.options import SourceOptions
from tests.cli.runs import batch_of, commit
from tests.conftest import RECORDINGS, BulkFrom, log_directories, read_json
from tests.replay.test_compact_recordings import LOADED, answered, profile_of, without_unanswered_topics
from tests.replay.test_rebuild_recordings import TYPE_OF_EMPTY_GROUP_IS_LOST, differences

Json = dict[str, Any]
Recording = Callable[[str], Path]
OF_THE_SAME_BYTES = ("random-java", "random-scala")
"""Recordings of the same log by both coordinators: each by its own rules."""
TABLES = ("groups", "offsets", "pending", "orphans")
PIECES = 3


def local(folder: Path, profile: str, names: dict[bytes, str]) -> Json:
    """What the command line answers."""
    with open_logs([str(folder)]) as opened:
        found = Memory(PROFILES[profile])
        for log in opened.logs:
            state = finish(replay(iter_events(log), PROFILES[profile], on_damage=lambda damage: None))
            found.add(log, state, Survey.of(log))
        found.name_topics(names, {})
        return found.document([])


def document_of(folder: Path, profile: str, names: dict[bytes, str], *, pieces: int) -> Json:
    """What tasks make of each log, which has so many pieces; 0 for none, as tasks read small logs."""
    reading = SourceOptions(paths=(str(folder),), profile=profile)
    found = plan_reading(reading)
    with ExitStack() as stack:
        replayed = [joined(files, reading, pieces, stack) for files in found.logs]
        logs = [one[0].log if one else files.open(stack) for one, files in zip(replayed, found.logs, strict=True)]

        def written(told: Told) -> list[Written]:
            opened = zip(logs, replayed, strict=True)
            return [rebuilt(OneLog(log, reading, told, stack, joined=one)) for log, one in opened]

        known = [facts["names"] for _, facts in written(Told())]
        told = {bytes(Uuid.from_text(key)): name for some in reversed(known) for key, name in some.items()} | names
        return as_document([tables for tables, _ in written(Told(told))])


def joined(files: Any, reading: SourceOptions, pieces: int, stack: ExitStack) -> Any:
    """The log replayed in pieces, each by a replay of its own, and joined by another."""
    if not pieces:
        return None
    how = {"pieces": pieces, "notes_activity": True}
    packed = []
    for number in range(len(Replay(files.open(stack), reading.rules, **how).cuts)):
        alone = Replay(files.open(stack), reading.rules, **how)
        packed.append(pack(alone.replay_piece(alone.cuts[number], alone.ends[number], repr), alone.order.layout))
    whole, seen = Replay(files.open(stack), reading.rules, **how), list[Seen]()
    return join(packed, whole, seen.append), seen


def as_document(made: list[dict[str, pa.Table]]) -> Json:
    tables: Json = {name: [row for one in made for row in one[name].to_pylist()] for name in TABLES}
    tables["groups"] = [json.loads(row["document"]) for row in tables["groups"]]
    loads = [row for one in made for row in one["loads"].to_pylist()]
    tables["loads"] = {
        str(row["offsets_partition"]): {name: row[name] for name in ("ok", "record_offset", "rule", "problem")}
        for row in loads
    }
    return tables


def sorted_rows(found: Any) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in found)


def without_raw_names(found: list[Json]) -> list[Json]:
    """Tables of fixed columns have no room for the raw bytes of a name that is not UTF-8."""
    return [{name: value for name, value in row.items() if not name.endswith("_base64")} for row in found]


def assert_same(ours: Json, expected: Json) -> None:
    for name in TABLES:
        wanted = expected[name] if name == "groups" else without_raw_names(expected[name])
        assert sorted_rows(ours[name]) == sorted_rows(wanted), name
    assert ours["loads"] == {name: load for name, load in expected["loads"].items() if name != "unknown"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings(name: str, recording: Recording) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    names = {Uuid.from_text(topic["id"]): name for name, topic in facts.get("topics", {}).items() if "id" in topic}
    own = profile_of(facts).name if name in LOADED else MODERN.name
    others = {CLASSIC.name if own != CLASSIC.name else MODERN.name} if name not in OF_THE_SAME_BYTES else set()
    for directory in log_directories(folder):
        for profile in sorted({own, *others}):
            expected = local(directory, profile, names)
            for pieces in (0, PIECES):
                ours = document_of(directory, profile, names, pieces=pieces)
                assert_same(ours, expected)
            if name in LOADED and profile == profile_of(facts).name:
                assert_answered(name, ours, folder / "answers" / f"restart{directory.name.removeprefix('log')}.json")
        others = set()


def assert_answered(name: str, ours: Json, answers: Path) -> None:
    answer = read_json(answers)
    columns = ("group", "topic", "partition", "committed_offset", "leader_epoch", "metadata")
    served = {tuple(row[column] for column in columns) for row in ours["offsets"]}
    assert without_unanswered_topics(name, served, answer) == answered(answer)
    if "groups" not in answer:
        return
    if name in TYPE_OF_EMPTY_GROUP_IS_LOST:
        for row in answer["groups"]:
            if row["state"] == "Empty":
                del row["protocol_type"]
    assert differences(ours, answer) == []


def level(folder: Path, name: str, **more: Any) -> list[Json]:
    """The rows of a level as tasks read them."""
    reading = SourceOptions(paths=(str(folder),), level=name, **more)
    found = plan_reading(reading)
    pieces = parts_to_read(found.logs, reading)
    return [row for piece in pieces for table in rows(piece, reading, found.told) for row in table.to_pylist()]


def command(*words: str) -> list[Json]:
    done = CliRunner().invoke(offsets_log, [*words, "-o", "jsonl", "-q"], catch_exceptions=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


QUESTIONS = {
    "offsets": ("compact",),
    "groups": ("groups", "--now", "0"),
    "history": ("history", "-g", "*"),
    "pending": ("rebuild", "--table", "pending"),
    "members": ("rebuild", "--table", "members"),
}


@pytest.mark.parametrize("bulk", [True, False])
@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-1.1"])
def test_levels_are_commands(name: str, bulk: bool, recording: Recording, bulk_from: BulkFrom) -> None:
    """By kernels, and as small logs are read, with what each of them leaves out."""
    if bulk:
        bulk_from(0)
    folder = recording(name) / "log"
    profile = "classic" if name == "kafka-1.1" else "modern"
    for each, question in QUESTIONS.items():
        expected = command(question[0], str(folder), "--profile", profile, *question[1:])
        expected = [*map(flat, map(nested_member, expected) if each == "members" else expected)]
        columns = [column.name for column in LEVELS[each]]
        found = level(folder, each, profile=profile)
        shown = [{column: row[column] for column in columns if column in expected[0]} for row in found]
        wanted = [{column: row[column] for column in shown[0]} for row in expected]
        assert sorted_rows(map(flat, shown)) == sorted_rows(wanted), each


def flat(row: Json) -> Json:
    """Lists as text, whichever way they are told; fields that are null are not told."""
    texts = {name: json.loads(value) if _is_json(value) else value for name, value in row.items()}
    return {
        name: json.dumps(_told(value)) if isinstance(value, list | dict) else value for name, value in texts.items()
    }


def _told(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_told, value)]
    if isinstance(value, dict):
        return {name: _told(value[name]) for name in sorted(value) if value[name] is not None}
    return value


def _is_json(value: Any) -> bool:
    return isinstance(value, str) and value[:1] in ("[", "{") and value[-1:] in ("]", "}")


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of two offsets partitions in many small segments, with transactions across them."""
    folder = tmp_path_factory.mktemp("generated")
    options = Options(
        bytes=2 << 20, groups=40, partitions=6, transactions=0.2, tombstones=0.05, offsets_partitions=2,
        segment_bytes=130_000, codec="lz4",
    )  # fmt: skip
    generate(folder / "log", options)
    return folder / "log"


@pytest.mark.parametrize("profile", ["modern", "classic"])
@pytest.mark.parametrize("pieces", [1, 2, 7, 40])
def test_any_cutting(profile: str, pieces: int, generated: Path) -> None:
    assert_same(document_of(generated, profile, {}, pieces=pieces), local(generated, profile, {}))


@pytest.mark.parametrize("name", ["records", "raw_records"])
def test_records_of_pieces_are_those_of_the_log(name: str, generated: Path, bulk_from: BulkFrom) -> None:
    whole = level(generated, name)
    assert len(whole) > 1000
    assert level(generated, name, cut_bytes=100_000) == whole
    bulk_from(0)
    assert level(generated, name) == whole
    decoded = level(generated, "records")
    group = next(row["group"] for row in decoded if row["group"])
    some = level(generated, "records", group=(group,), cut_bytes=100_000)
    assert some == [row for row in decoded if row["group"] == group]


@pytest.mark.parametrize("bulk", [True, False])
@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-1.1", "kafka-3.9-classic"])
def test_levels_are_the_librarys_tables(name: str, bulk: bool, recording: Recording, bulk_from: BulkFrom) -> None:
    """All columns of a level, with the same values, but for ages, which levels leave out."""
    if bulk:
        bulk_from(0)
    folder = recording(name) / "log"
    profile = "classic" if name in ("kafka-1.1", "kafka-3.9-classic") else "modern"
    with ol.open(folder) as copy:
        tables = {
            "offsets": copy.offsets(profile=profile, unstable=True),
            "groups": copy.groups(profile=profile),
            "transactions": copy.transactions(profile=profile),
            "problems": copy.problems,
        }
        for each, table in tables.items():
            columns = [column.name for column in LEVELS[each]]
            whole = table.to_arrow()
            assert {*columns} <= {*whole.schema.names}
            found = level(folder, each, profile=profile)
            assert sorted_rows(map(flat, found)) == sorted_rows(map(flat, whole.select(columns).to_pylist())), each


@pytest.mark.parametrize("bulk", [True, False])
def test_what_is_wrong_is_told_alike(bulk: bool, tmp_path: Path, bulk_from: BulkFrom) -> None:
    """A lost segment, a damaged batch, and a torn end in another partition."""
    if bulk:
        bulk_from(0)
    damaged = bytearray(batch_of(commit("g2"), first=5))
    damaged[-1] ^= 1
    first, second = (tmp_path / f"__consumer_offsets-{number}" for number in (0, 1))
    for folder in (first, second):
        folder.mkdir()
    (first / f"{0:020}.log").write_bytes(batch_of(commit("g1"), commit("g2")))
    (first / f"{4:020}.log").write_bytes(batch_of(commit("g3"), first=4) + damaged)
    (second / f"{0:020}.log").write_bytes(batch_of(commit("g4")) + batch_of(commit("g5"), first=1)[:-3])
    for folder, kinds in ((first, {"missing", "corrupt"}), (second, {"tail"})):
        with ol.open(folder) as copy:
            tables = {"offsets": copy.offsets(unstable=True), "groups": copy.groups(), "problems": copy.problems}
            for each, table in tables.items():
                whole = table.select([column.name for column in LEVELS[each]]).rows()
                assert sorted_rows(map(flat, level(folder, each))) == sorted_rows(map(flat, whole)), each
            assert {row["kind"] for row in copy.problems.rows()} == kinds


@pytest.mark.parametrize("bulk", [True, False])
def test_segments_that_overlap(bulk: bool, tmp_path: Path, bulk_from: BulkFrom) -> None:
    """What stands in both is read once, as on this machine, whole and in pieces; records are not cut there."""
    if bulk:
        bulk_from(0)
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    batches = [batch_of(commit(f"g{number % 5}"), first=number) for number in range(40)]
    for first, last in ((0, 20), (12, 30), (25, 40)):
        (folder / f"{first:020}.log").write_bytes(b"".join(batches[first:last]))
    with ol.open(folder) as copy:
        tables = {"offsets": copy.offsets(unstable=True), "groups": copy.groups(), "problems": copy.problems}
        for each, table in tables.items():
            expected = table.select([column.name for column in LEVELS[each]]).rows()
            assert sorted_rows(map(flat, level(folder, each))) == sorted_rows(map(flat, expected)), each
    assert [row["record_offset"] for row in level(folder, "records")] == [*range(len(batches))]
    for pieces in (0, 2, 5):
        assert_same(document_of(folder, "modern", {}, pieces=pieces), local(folder, "modern", {}))
    with pytest.raises(InputError, match="give the option cut_bytes more"):
        level(folder, "records", cut_bytes=200)
