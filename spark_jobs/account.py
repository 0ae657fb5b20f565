"""The report about a job that is a program: what was read, what could not be, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.completeness import Missing
from offsets_log.rows.survey import describe_tail
from offsets_log.rows.tables import damage_row
from spark_jobs.pieces import tail_of

DAMAGE_SHOWN = 5
QUARANTINE = "file string, position bigint, record_offset bigint, field string, kind string, problem string"


@dataclass(slots=True)
class Account:
    """The report about a run, besides its answer.

    Attributes:
        words: notes and tails, one sentence each.
        lost: log that is missing without explanation.
        damages: facts of the first few pieces that could not be read.
        is_wrong: whether the data directories are of several clusters, or files of theirs are broken.
        beside: what could not be read of what lies beside the logs.
    """

    records: int = 0
    partitions: int = 0
    corrupt: int = 0
    unsupported: int = 0
    words: list[str] = field(default_factory=list)
    lost: list[Missing] = field(default_factory=list)
    damages: list[dict[str, Any]] = field(default_factory=list)
    is_wrong: bool = False
    beside: list[Damage] = field(default_factory=list)

    def on_damage(self, damage: Damage) -> None:
        """Count and keep a piece beside the logs that could not be read."""
        self.beside.append(damage)
        self.unsupported += damage.is_unsupported
        self.corrupt += not damage.is_unsupported

    @property
    def is_damaged(self) -> bool:
        """Whether something could not be read."""
        return bool(self.corrupt or self.unsupported)

    def lines(self) -> Iterator[str]:
        """Yield the lines for standard error."""
        yield from self.words
        yield from (f"missing: {missing.in_words()}" for missing in self.lost)
        for facts in self.damages[:DAMAGE_SHOWN]:
            yield f"{facts['kind']}: {damage_error(facts)}"
        for damage in self.beside[:DAMAGE_SHOWN]:
            yield f"{'unsupported' if damage.is_unsupported else 'corrupt'}: {damage.error}"
        if self.is_damaged:
            yield f"not everything could be read: {self.corrupt} corrupt, {self.unsupported} unsupported"


def damage_error(facts: dict[str, Any]) -> OffsetsLogError:
    """Return the error of a damaged piece from its facts."""
    place = {name: facts[name] for name in ("file", "position", "record_offset", "field")}
    return OffsetsLogError(facts["problem"], **place)


def account_of(rows: DataFrame) -> Account:
    """Return the account of `fold.memory`'s rows, which should be persisted."""
    found = rows.where(f.col("kind").isin("piece", "tail", "missing")).select("kind", "log", "piece", "facts").collect()
    account = Account(partitions=len({row["log"] for row in found}))
    for row in sorted(found, key=lambda row: (row["log"] or 0, row["piece"] or 0)):
        facts = json.loads(row["facts"])
        match row["kind"]:
            case "piece":
                account.records += facts["records"]
                account.corrupt += facts["corrupt"]
                account.unsupported += facts["unsupported"]
                account.words += facts["notes"]
            case "tail":
                account.words.append(f"{facts['file']}: {describe_tail(tail_of(facts))}")
            case "missing":
                account.lost += (missing for missing in (Missing(**facts),) if missing.is_lost)
    if account.is_damaged:
        shown = rows.where(f.col("kind") == "damage").select("facts").limit(DAMAGE_SHOWN).collect()
        account.damages = [json.loads(row["facts"]) for row in shown]
    return account


def quarantine_of(spark: SparkSession, rows: DataFrame, beside: Sequence[Damage]) -> DataFrame:
    """Return pieces that could not be read, in the form of the command line's quarantine.

    Args:
        beside: those that are no rows.
    """
    damaged = rows.where(f.col("kind") == "damage")
    raw = f.regexp_replace(f.base64("value"), r"\s", "").alias("raw_base64")  # Spark breaks it into lines
    kept = damaged.select(f.from_json("facts", QUARANTINE).alias("facts"), raw).select("facts.*", "raw_base64")
    if not beside:
        return kept
    more = [tuple(damage_row(damage)[name] for name in kept.columns) for damage in beside]
    return kept.unionByName(spark.createDataFrame(more, kept.schema))
