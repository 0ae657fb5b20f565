"""Spark's answers are the local engine's and the brokers': every recording, both coordinators, any cutting."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.generate import Options, generate
from offsets_log.coordinator_document import Memory
from offsets_log.disk.reader import open_logs
from offsets_log.log_format.primitives import Uuid
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.profile import CLASSIC, MODERN, PROFILES
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.groups import group_row
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import COMPACT_COLUMNS
from offsets_log.rows.tables import PENDING_NAMES as PENDING
from spark_jobs.fold import memory
from spark_jobs.jobs import compact, compact_rows, read, rebuilt
from spark_jobs.options import SourceOptions
from tests.conftest import RECORDINGS, log_directories, read_json
from tests.replay.test_compact_recordings import LOADED, answered, profile_of, without_unanswered_topics
from tests.replay.test_rebuild_recordings import TYPE_OF_EMPTY_GROUP_IS_LOST, differences

Json = dict[str, Any]
Recording = Callable[[str], Path]
WITH_ALL_TABLES = ("kafka-4.3-mixed", "kafka-4.3-modern-groups")
"""Recordings of which every DataFrame is asked for; the others' rows are taken in one job."""
OF_THE_SAME_BYTES = ("random-java", "random-scala")
"""Recordings of the same log by both coordinators: each by its own rules."""
TABLES = ("groups", "offsets", "pending", "orphans")


def local(folder: Path, profile: str, names: dict[bytes, str]) -> Json:
    """What the command line answers."""
    with open_logs([str(folder)]) as opened:
        found = Memory(PROFILES[profile])
        for log in opened.logs:
            state = finish(replay(iter_events(log), PROFILES[profile], on_damage=lambda damage: None))
            found.add(log, state, Survey.of(log))
        found.name_topics(names, {})
        return found.document([])


def by_spark(spark: Any, folder: Path, profile: str, names: dict[bytes, str], **options: Any) -> Json:
    """The same by Spark's tables."""
    reading = SourceOptions(paths=(str(folder),), level="partials", profile=profile, **options)
    rows = memory(read(spark, reading), profile).persist()
    tables = rebuilt(rows, profile, names).tables()
    document = {name: [row.asDict() for row in tables[name].collect()] for name in TABLES}
    document["groups"] = [json.loads(row["document"]) for row in document["groups"]]
    document["loads"] = {
        str(row["offsets_partition"]): {name: row[name] for name in ("ok", "record_offset", "rule", "problem")}
        for row in tables["loads"].collect()
    }
    assert sorted_rows(row.asDict() for row in compact_rows(rows).collect()) == sorted_rows(document["offsets"])
    rows.unpersist()
    return document


def at_once(spark: Any, folder: Path, profile: str, names: dict[bytes, str], **options: Any) -> Json:
    """The same in one job, from the joined rows themselves."""
    reading = SourceOptions(paths=(str(folder),), level="partials", profile=profile, **options)
    rows = memory(read(spark, reading), profile).toArrow()
    of_kind: dict[str, list[Json]] = {}
    for row in rows.to_pylist():
        of_kind.setdefault(row["kind"], []).append(row)
    compact_names = [column.name for column in COMPACT_COLUMNS]
    chosen = {"offsets": ("served", compact_names), "orphans": ("orphan", compact_names), "pending": ("open", PENDING)}
    document: Json = {
        name: [{column: row[column] for column in columns} for row in of_kind.get(kind, ())]
        for name, (kind, columns) in chosen.items()
    }
    logs: dict[int, dict[bytes, str]] = {}
    for row in of_kind.get("topic_name", ()):
        logs.setdefault(row["log"], {})[bytes(Uuid.from_text(row["topic_id"]))] = row["topic"]
    known = TopicNames(names, *(logs[number] for number in sorted(logs)))
    document["groups"] = [
        group_row(pickle.loads(row["value"]), PROFILES[profile], known, row["offsets_partition"])
        for row in of_kind.get("group", ())
    ]
    problems = sorted(
        ((row["offsets_partition"], json.loads(row["facts"])) for row in of_kind.get("problem", ())),
        key=lambda item: -item[1]["record_offset"],
    )
    document["loads"] = {
        str(row["offsets_partition"]): {"ok": True, "record_offset": None, "rule": None, "problem": None}
        for row in of_kind["piece"]
    } | {
        str(partition): {"ok": False} | {name: facts[name] for name in ("record_offset", "rule", "problem")}
        for partition, facts in problems
    }
    return document


def sorted_rows(rows: Any) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)


def without_raw_names(rows: list[Json]) -> list[Json]:
    """Tables of fixed columns have no room for the raw bytes of a name that is not UTF-8."""
    return [{name: value for name, value in row.items() if not name.endswith("_base64")} for row in rows]


def assert_same(ours: Json, expected: Json) -> None:
    for name in TABLES:
        rows = expected[name] if name == "groups" else without_raw_names(expected[name])
        assert sorted_rows(ours[name]) == sorted_rows(rows), name
    expected_loads = {name: load for name, load in expected["loads"].items() if name != "unknown"}
    assert ours["loads"] == expected_loads


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings(name: str, recording: Recording, spark: Any) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    names = {Uuid.from_text(topic["id"]): name for name, topic in facts.get("topics", {}).items() if "id" in topic}
    own = profile_of(facts).name if name in LOADED else MODERN.name
    others = {CLASSIC.name if own != CLASSIC.name else MODERN.name} if name not in OF_THE_SAME_BYTES else set()
    for directory in log_directories(folder):
        for profile in sorted({own, *others}):
            answer = by_spark if name in WITH_ALL_TABLES else at_once
            ours = answer(spark, directory, profile, names)
            assert_same(ours, local(directory, profile, names))
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


@pytest.mark.parametrize(
    ("profile", "plans"),
    [
        ("modern", ((None, "2", "true"), (5, "7", "false"))),
        ("classic", ((1, "1", "false"), (40, "3", "true"))),
    ],
)
def test_any_cutting_partitioning_and_planning(profile: str, plans: Any, generated: Path, spark: Any) -> None:
    expected = local(generated, profile, {})
    for pieces, shuffled, adaptive in plans:
        spark.conf.set("spark.sql.shuffle.partitions", shuffled)
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)
        try:
            assert_same(by_spark(spark, generated, profile, {}, pieces=pieces), expected)
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", "2")
            spark.conf.set("spark.sql.adaptive.enabled", "true")
    assert_same(at_once(spark, generated, profile, {}, split=False), expected)


def test_large_segments_are_cut_at_batches(tmp_path: Path, spark: Any) -> None:
    generate(tmp_path / "log", Options(bytes=3 << 20, groups=20, transactions=0.3, tombstones=0.05))
    reading = SourceOptions(paths=(str(tmp_path / "log"),), level="partials", piece_bytes=300_000)
    pieces = read(spark, reading).where("kind = 'piece'").count()
    assert pieces >= 8
    ours = by_spark(spark, tmp_path / "log", "modern", {}, piece_bytes=300_000)
    assert_same(ours, local(tmp_path / "log", "modern", {}))


@pytest.mark.parametrize("level", ["records", "events"])
def test_dataframes_of_records_go_through_the_same_functions(level: str, recording: Recording, spark: Any) -> None:
    folder = recording("kafka-4.3-mixed")
    frame = read(spark, SourceOptions(paths=(str(folder / "log"),), level=level))
    for profile in ("modern", "classic"):
        rows = memory(spark_partials(frame, profile), profile)
        offsets = [row.asDict() for row in compact_rows(rows).collect()]
        assert sorted_rows(offsets) == sorted_rows(without_raw_names(local(folder / "log", profile, {})["offsets"]))
    undecided = compact(frame).where("undecided").count() if level == "records" else 3
    assert undecided == 3


def test_a_table_older_than_a_tagged_field_is_read_with_its_default(recording: Recording, spark: Any) -> None:
    frame = read(spark, SourceOptions(paths=(str(recording("kafka-1.1") / "log"),), level="events"))
    found, expected = (
        sorted_rows(
            [row.asDict() for row in compact_rows(memory(spark_partials(table, "classic"), "classic")).collect()]
        )
        for table in (frame.drop("topic_id"), frame)
    )
    assert found == expected
    assert found


def spark_partials(frame: Any, profile: str) -> Any:
    from spark_jobs.records import partials_of

    return partials_of(frame, profile)


def test_the_kafka_sources_columns_cannot_tell_transactions(recording: Recording, spark: Any) -> None:
    from spark_jobs import UndecidedWarning

    folder = recording("kafka-1.1")
    frame = read(spark, SourceOptions(paths=(str(folder / "log"),), level="records"))
    live = frame.where("not isControl").select("key", "value", "topic", "partition", "offset", "timestamp")
    with pytest.warns(UndecidedWarning, match="cannot be told"):
        offsets = compact(live, profile="classic")
    assert offsets.where("undecided is null").count() == offsets.count() > 0
