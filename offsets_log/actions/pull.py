"""A byte-exact copy of internal topics from a live cluster, over the network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from offsets_log.actions.metrics import serving
from offsets_log.cluster.properties import read_properties
from offsets_log.cluster.reader import ClusterReader
from offsets_log.messages.internal_topics import OFFSETS_TOPIC, SHARE_GROUP_STATE, TRANSACTION_STATE
from offsets_log.pulling.copy import open_copy
from offsets_log.pulling.run import Pace, Pulling
from offsets_log.words import counted

if TYPE_CHECKING:
    import threading

    from offsets_log.following.metrics import Sample
    from offsets_log.pulling.copy import Copy
    from offsets_log.session.listener import Listener

LONG = 100_000
"""Offsets from which a bar is worth showing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PullAsked:
    """What is asked of a pull.

    Attributes:
        to: a new directory, or that of an earlier run, which is continued.
        command_config: a file of properties for the connection.
        offsets_partition: only these partitions of the offsets topic; empty for all.
        max_bytes_per_second: of all brokers together; None for no limit.
        rack: this machine's, whose replicas are read if there are any.
        with_transaction_state, with_share_state: whether these topics are copied too.
        stopping: of a run that goes on as the logs grow, begins what tells it to stop; None for one that does not.
        metrics_port: where such a run serves metrics: host and port.
    """

    bootstrap_server: str
    to: str
    command_config: str | None = None
    offsets_partition: tuple[int, ...] = ()
    max_bytes_per_second: int | None = None
    rack: str = ""
    with_transaction_state: bool = False
    with_share_state: bool = False
    stopping: Callable[[], AbstractContextManager[threading.Event]] | None = None
    metrics_port: tuple[str, int] | None = None

    @property
    def topics(self) -> list[str]:
        """The topics that are copied."""
        asked = {TRANSACTION_STATE: self.with_transaction_state, SHARE_GROUP_STATE: self.with_share_state}
        return [OFFSETS_TOPIC, *(topic for topic, is_asked in asked.items() if is_asked)]


class Pull:
    """A run, and what is said of it."""

    def __init__(self, asked: PullAsked, listener: Listener) -> None:
        self._asked, self._listener, self._say = asked, listener, listener.say
        self._began = time.monotonic()

    def run(self) -> Copy:
        """Pull all that is asked for. Raises OffsetsLogError."""
        asked, say = self._asked, self._say
        properties = read_properties(asked.command_config, say)
        with (
            closing(ClusterReader(asked.bootstrap_server, properties)) as reader,
            open_copy(asked.to, say) as copy,
        ):
            now = copy.begin(reader, asked.topics, asked.offsets_partition)
            for absent in copy.absent:
                say(absent)
            if words := copy.write_log_ends(reader, now):
                say(words)
            offsets = sum(max(partition.target - partition.end_offset, 0) for partition in copy.partitions)
            with self._listener.progress(offsets, unit="offsets", long=LONG) as advance:
                pace = Pace(asked.max_bytes_per_second)
                pulling = Pulling(reader, copy.partitions, pace, asked.rack, advance, say)
                if asked.stopping is None:
                    pulling.run()
                else:
                    with self._measured(copy):
                        self._follow(pulling, copy, asked.stopping)
        return copy

    @staticmethod
    def _follow(pulling: Pulling, copy: Copy, stopping: Callable[[], AbstractContextManager[threading.Event]]) -> None:
        """Pull until it is told to stop, and beyond where the logs ended when the run began."""
        pulling.follow()
        pulling.note = partial(copy.note, pulling.reader, pulling.say_once)
        with stopping() as pulling.stop:
            pulling.run()

    @contextmanager
    def _measured(self, copy: Copy) -> Iterator[None]:
        """Serve metrics for as long as the context lasts, if that is asked for."""
        if self._asked.metrics_port is None:
            yield
            return

        def samples() -> list[Sample]:
            return [one for some in copy.partitions for one in some.samples()]

        with serving(*self._asked.metrics_port, samples, self._say):
            yield

    def finish(self, copy: Copy) -> bool:
        """Report what came of it; return whether everything was copied, and is sound."""
        rows = list(copy.rows())
        for row in rows:
            if row["problem"] is not None:
                self._say(f"{row['topic']}-{row['partition']} is not whole: {row['problem']}")
            if row["damaged"]:
                damaged = counted(row["damaged"], "batch", "batches")
                self._say(f"{row['topic']}-{row['partition']}: {damaged} with a wrong checksum, as at the broker")
        seconds = time.monotonic() - self._began
        pulled = sum(row["pulled_bytes"] for row in rows)
        whole = sum(row["whole"] for row in rows)
        goes_on = any(not one.is_whole and (one.problem is None or one.may_pass) for one in copy.partitions)
        self._say(
            f"{counted(len(rows), 'partition')}, {whole} whole: {counted(pulled, 'byte')} pulled in {seconds:.1f} s"
            + ("; the same command goes on" if goes_on else "")
        )
        return not copy.absent and all(row["whole"] and not row["damaged"] for row in rows)
