"""Follow logs on Spark: the tables of latest offsets and of groups, kept current from a checkpoint on."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from offsets_log.errors import InputError, OutputError
from offsets_log.words import counted
from spark_jobs.account import DAMAGE_SHOWN, damage_error
from spark_jobs.options import SourceOptions, as_options
from spark_jobs.session import own_error
from spark_jobs.source import FORMAT
from spark_jobs.stateful import CHANGES, GROUPS, OFFSETS, STATE, keeper
from spark_jobs.upsert import ABOUT, TablePlace, Upsert

LOOK_S = 1
ATTEMPTS, TOO_SLOW = 3, "Python worker failed to connect back"
"""Spark waits ten seconds for a process to start, which a busy machine may need."""
_ERROR = re.compile(r"^(?:Caused by: )?([\w.]*(?:Error|Exception): .*)$", re.MULTILINE)
NOT_FOLLOWED = ("group", "topic", "columns", "until_offset", "until_time")
"""Options that leave out what a state is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOrder:
    """What is followed, and where to.

    Attributes:
        to: a directory of tables: ``offsets`` and ``groups``, and what changed in each batch if that is asked for.
        checkpoint: the directory in which Spark keeps how far it is, and the state; of these tables alone.
        every_s: seconds between two batches; None to end with what is there now.
    """

    reading: SourceOptions
    to: str
    checkpoint: str
    every_s: float | None = None
    with_changes: bool = False

    @property
    def upsert(self) -> Upsert:
        """What writes the tables."""
        return Upsert(_place(self.to, self.reading), self.with_changes)


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of a run: a summary, further sentences, and whether something was damaged or missing."""

    summary: str
    words: tuple[str, ...]
    is_damaged: bool


def _place(url: str, reading: SourceOptions) -> TablePlace:
    return TablePlace(url, tuple(sorted(reading.storage_options.items())))


def start(spark: SparkSession, order: FollowOrder) -> StreamingQuery:
    """Begin to follow, or go on.

    Raises:
        InputError: an option does not go with it, or the checkpoint is of another run.
        OutputError: the tables are not those of the checkpoint.
    """
    for name in NOT_FOLLOWED:
        if getattr(order.reading, name):
            raise InputError(f"the option {name} does not go with follow, which keeps the state of all groups")
    _refuse_inside(order)
    _bind(order)
    order.upsert.begin()
    reading = replace(order.reading, level="effects")
    effects = spark.readStream.format(FORMAT).options(**as_options(reading)).load()
    changes = effects.groupBy("offsets_partition", "bucket").applyInPandasWithState(
        keeper(reading.profile), CHANGES, STATE, "append", GroupStateTimeout.NoTimeout
    )
    writing = changes.writeStream.outputMode("append").option("checkpointLocation", order.checkpoint)
    writing = writing.foreachBatch(order.upsert.write)
    if order.every_s is None:
        return writing.trigger(availableNow=True).start()
    return writing.trigger(processingTime=f"{round(order.every_s * 1000)} milliseconds").start()


def _refuse_inside(order: FollowOrder) -> None:
    """Refuse tables and checkpoints inside of an input or of each other. Raises OutputError."""
    places = [_place(url, order.reading).open()[1] for url in (order.to, order.checkpoint)]
    inputs = [_place(url, order.reading).open()[1] for url in order.reading.paths]
    for url, place, others in zip((order.to, order.checkpoint), places, (places[1:], places[:1]), strict=True):
        for other in (*inputs, *others):
            if f"{place}/".startswith(f"{other}/"):
                raise OutputError(f"this is inside of {other}: write elsewhere", file=url)


def _bind(order: FollowOrder) -> None:
    """Tell the tables and the checkpoint that they belong together; see that they do."""
    tables, checkpoint = _place(order.to, order.reading), _place(order.checkpoint, order.reading)
    about = {"profile": order.reading.profile, "kafka": order.reading.kafka and list(order.reading.kafka)}
    known, other = _about(checkpoint), _about(tables)
    if known is None:
        if checkpoint.names():
            raise InputError("this is no checkpoint of follow, and not empty: give a new one", file=order.checkpoint)
        if tables.names():
            raise OutputError("this exists and is not of this checkpoint: give a new one", file=order.to)
        known = about | {"id": secrets.token_hex(8)}
        _write_about(checkpoint, known)
    elif other is None and (tables.names() or any(name.startswith("offsets/") for name in checkpoint.names())):
        raise OutputError(f"the tables of the checkpoint {order.checkpoint} are not here", file=order.to)
    if other is None:
        _write_about(tables, known)
    elif other["id"] != known["id"]:
        raise OutputError(f"these tables are of another checkpoint than {order.checkpoint}", file=order.to)
    for name, value in about.items():
        if known[name] != value:
            raise InputError(f"the checkpoint was begun with {name} {known[name]}, not {value}", file=order.checkpoint)


def _about(place: TablePlace) -> dict[str, Any] | None:
    data = place.read(ABOUT)
    if data is None:
        return None
    try:
        about = json.loads(data)
        return {name: about[name] for name in ("id", "profile", "kafka")}
    except (ValueError, KeyError, TypeError):
        raise InputError("this was not written by follow", file=f"{place.url}/{ABOUT}") from None


def _write_about(place: TablePlace, about: dict[str, Any]) -> None:
    name = f".{ABOUT}.{secrets.token_hex(4)}"
    place.write(name, lambda file: file.write(json.dumps(about).encode()))
    place.move(name, ABOUT)


def run(spark: SparkSession, order: FollowOrder, stop: threading.Event, tell: Callable[[str], None]) -> Followed:
    """Follow until all is read that was there, or ``stop`` is set.

    Args:
        tell: told what happens on the way.

    Raises:
        OffsetsLogError: what ended it otherwise.
    """
    for is_last in (*[False] * (ATTEMPTS - 1), True):
        query = start(spark, order)
        try:
            while not (stop.is_set() or query.awaitTermination(LOOK_S)):
                pass
            break
        except PySparkException as error:
            if is_last or TOO_SLOW not in str(error):
                cause = InputError(f"Spark ended the stream: {_cause(str(error))}")
                raise own_error(error) or cause from None
            tell("a process of Python did not start in time; it is tried again")
        finally:
            query.stop()
    if stop.is_set():
        tell("it is ended; the same command goes on from here")
    return _followed(order, query)


def _cause(words: str) -> str:
    """Return the last error that Spark tells of, or its first line."""
    return next(reversed(_ERROR.findall(words)), words.partition("\n")[0])


def _followed(order: FollowOrder, query: StreamingQuery) -> Followed:
    upsert, words = order.upsert, []
    for facts in (damages := upsert.damages())[:DAMAGE_SHOWN]:
        words.append(f"{facts['kind']}: {damage_error(facts)}")
    if damages:
        words.append(f"not everything could be read: {counted(len(damages), 'piece')}, kept in {order.to}/damage")
    lost = _lost(query)
    words += [f"missing: {counted(count, 'offset')} of offsets partition {name}" for name, count in lost.items()]
    offsets, groups = upsert.count(OFFSETS), upsert.count(GROUPS)
    summary = f"{counted(offsets, 'offset')}, {counted(groups, 'group')}; profile {order.reading.profile}"
    return Followed(summary, tuple(words), bool(damages or lost))


def _lost(query: StreamingQuery) -> dict[str, int]:
    """Return how many offsets no segment of a partition holds, as far as the last batch tells."""
    progress: Any = query.lastProgress
    if not progress or not progress["sources"]:
        return {}
    end = progress["sources"][0]["endOffset"]
    places = json.loads(end) if isinstance(end, str) else end
    return {name: place["lost"] for name, place in (places or {}).items() if place.get("lost")}
