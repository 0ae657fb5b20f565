"""The data source as Spark people use it: levels in SQL, schemas of their own, filters, what is found and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException

from offsets_log.errors import InputError
from offsets_log_cli.main import main as offsets_log
from spark_jobs import UndecidedWarning, table_of
from spark_jobs.levels import LEVELS
from spark_jobs.options import LEVELS as NAMES
from spark_jobs.options import parse
from spark_jobs.session import own_error

ROOT = Path(__file__).parent.parent.parent
SAMPLE = str(ROOT / "samples" / "kafka-4.3-mixed" / "log")
Recording = Callable[[str], Path]


def load(spark: Any, level: str, path: str = SAMPLE, **options: str) -> Any:
    return spark.read.format("offsets_log").option("level", level).options(**options).load(path)


def command(*words: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(offsets_log, [*words, "-o", "jsonl", "-q"], catch_exceptions=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_level_is_a_table(spark: Any) -> None:
    """With the columns of its command, and times; the format needs no registering where Spark finds it."""
    counts = {
        "offsets": 129, "pending": 3, "groups": 34, "members": 11, "transactions": 3, "history": 520, "problems": 0,
        "records": 599, "raw_records": 599,
    }  # fmt: skip
    for level in NAMES:
        frame = load(spark, level)
        names = [column.name for column in LEVELS[level] if column.name not in ("unstable", "headers")]
        assert [name for name in frame.columns if name in names] == names
        assert len(frame.toArrow()) == counts[level], level
    default = spark.read.format("offsets_log").load(SAMPLE)
    times = dict(default.dtypes)
    assert (times["commit_timestamp"], times["commit_timestamp_ms"]) == ("timestamp", "bigint")
    row = default.where("commit_timestamp_ms > 0").first()
    assert int(row["commit_timestamp"].timestamp() * 1000) == row["commit_timestamp_ms"]


def test_spark_finds_the_format_by_its_packages_name() -> None:
    import pyspark_offsets_log

    assert pyspark_offsets_log.DefaultSource.name() == "offsets_log"


def test_a_view_in_sql(spark: Any) -> None:
    """Of a table of the catalog Spark tells readers no options, which is said."""
    spark.sql(f"CREATE TEMPORARY VIEW of_groups USING offsets_log OPTIONS (path '{SAMPLE}', level 'groups')")
    assert spark.sql("SELECT sum(offsets) FROM of_groups").first()[0] == 129
    with pytest.raises(PySparkException) as raised:
        spark.sql(f"CREATE TABLE of_groups USING offsets_log OPTIONS (path '{SAMPLE}', level 'groups')")
    assert "CREATE TEMPORARY VIEW" in str(own_error(raised.value))
    with pytest.raises(InputError, match="CREATE TEMPORARY VIEW"):
        parse({})


def test_a_users_schema_is_honoured(spark: Any) -> None:
    frame = spark.read.format("offsets_log").option("level", "records").schema("topic string, `group` string")
    found = frame.load(SAMPLE)
    assert found.columns == ["topic", "group"]
    expected = load(spark, "records", columns="topic,group")
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
    assert load(spark, "offsets", columns='["group", "commit_timestamp"]').columns == ["group", "commit_timestamp"]


def test_filters_of_options_are_those_of_queries(spark: Any) -> None:
    whole = load(spark, "records")
    some = load(spark, "records", offsets_partition="1,3", group="metrics-*")
    expected = whole.where("offsets_partition in (1, 3) and `group` like 'metrics-%'")
    assert sorted(map(str, some.collect())) == sorted(map(str, expected.collect())) != []


def test_a_wrong_option_is_one_sentence(spark: Any) -> None:
    for options, words in (
        ({"level": "partials"}, "not one of offsets, pending"),
        ({"colour": "red"}, "there is no option 'colour'"),
        ({"until_time": "yesterday"}, "the option until_time cannot be 'yesterday'"),
        ({"columns": "colour"}, "the level offsets has no column 'colour'"),
    ):
        with pytest.raises(PySparkException) as raised:
            load(spark, options.pop("level", "offsets"), **options).collect()
        error = own_error(raised.value)
        assert error is not None
        assert words in str(error)


@pytest.mark.parametrize("level", ["records", "raw_records"])
def test_dataframes_of_records_lead_to_the_same_tables(level: str, spark: Any) -> None:
    """No row of what is pending among them, and no more tasks than records are worth."""
    frame = load(spark, level)
    for profile in ("modern", "classic"):
        expected = load(spark, "offsets", profile=profile, unstable="true")
        found = table_of(frame, profile=profile)
        assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
    groups = load(spark, "groups")
    assert sorted(map(str, table_of(frame, "groups").collect())) == sorted(map(str, groups.collect()))
    with pytest.raises(InputError, match="none of the columns that are read"):
        table_of(groups)


def test_a_table_older_than_a_tagged_field_is_read_with_its_default(recording: Recording, spark: Any) -> None:
    frame = load(spark, "records", str(recording("kafka-1.1") / "log"))
    found, expected = (
        sorted(map(str, table_of(table, profile="classic").collect())) for table in (frame.drop("topic_id"), frame)
    )
    assert found == expected != []


def test_the_kafka_sources_columns_cannot_tell_transactions(recording: Recording, spark: Any) -> None:
    frame = load(spark, "raw_records", str(recording("kafka-1.1") / "log"))
    live = frame.where("not isControl").select("key", "value", "topic", "partition", "offset", "timestamp")
    with pytest.warns(UndecidedWarning, match="cannot be told"):
        offsets = table_of(live, profile="classic")
    assert offsets.where("unstable is null").count() == offsets.count() > 0


def test_few_records_are_few_tasks(spark: Any) -> None:
    """Spark joins the parts of a shuffle again; it could not those of a range."""
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    try:
        assert table_of(load(spark, "raw_records")).toArrow().num_rows == 129
        tracker = spark.sparkContext.statusTracker()
        jobs = tracker.getJobIdsForGroup(None)
        stages = [tracker.getStageInfo(stage) for job in list(jobs)[:3] for stage in tracker.getJobInfo(job).stageIds]
        assert max(stage.numTasks for stage in stages if stage is not None) < 20
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
