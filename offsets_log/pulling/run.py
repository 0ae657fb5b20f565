"""Rounds over the brokers that lead partitions: each is asked by a thread, until all is there or patience ends."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from offsets_log.broker.failures import BrokerError
from offsets_log.cluster.reader import ClusterNow, ClusterReader, Pauses
from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.protocol.error_codes import NO_ERROR, OFFSET_OUT_OF_RANGE, REFUSALS, name_of
from offsets_log.protocol.list_offsets import EARLIEST, LATEST
from offsets_log.pulling.partition import ENDLESS, DivergedError, PulledPartition, UnsureError, refusal

FETCH_BYTES = 16 << 20
"""Of a response, but for a first batch that is larger."""
LEAST_FETCH_BYTES = 1 << 16
NOTE_EVERY_S = 10.0

Advance = Callable[[int], None]
Positions = dict[TopicPartition, tuple[int, int]]
"""Partition → leader epoch, and the offset to read from."""
Fetched = tuple[dict[TopicPartition, dict[str, Any]], float]
"""As `ClusterReader.fetch` returns it."""


@dataclass(slots=True)
class Pace:
    """Holds all threads together to so many bytes a second."""

    bytes_per_second: int | None
    _free_at: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def fetch_bytes(self) -> int:
        """The size of a request: not more than what a second allows."""
        if self.bytes_per_second is None:
            return FETCH_BYTES
        return max(min(FETCH_BYTES, self.bytes_per_second), LEAST_FETCH_BYTES)

    def wait(self, size_bytes: int, is_over: threading.Event) -> None:
        """Wait after so many bytes, for as long as they may take."""
        if self.bytes_per_second is None:
            return
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic()) + size_bytes / self.bytes_per_second
            free_at = self._free_at
        is_over.wait(free_at - time.monotonic())


@dataclass(slots=True)
class Pulling:
    """A run over partitions; what became of each stands in it.

    Attributes:
        rack: where this machine is: brokers may name a replica that is nearer (KIP-392).
        advance: told by how many offsets a copy has grown.
        tell: told what happens on the way, one sentence each.
        note: called every `NOTE_EVERY_S` seconds of a round.
        stop: ends the run; what was pulled by then is written.
        is_followed: whether it goes on for as long as it lasts; see `follow`.
    """

    reader: ClusterReader
    partitions: Sequence[PulledPartition]
    pace: Pace
    rack: str = ""
    advance: Advance = lambda count: None
    tell: Callable[[str], None] = lambda words: None
    note: Callable[[], None] = lambda: None
    stop: threading.Event = field(default_factory=threading.Event)
    is_followed: bool = False
    _told: set[str] = field(default_factory=set)

    def follow(self) -> None:
        """Go on beyond where the logs ended when the run began, until `stop`."""
        self.is_followed = True
        for partition in self.partitions:
            partition.target = ENDLESS

    def run(self) -> None:
        """Pull until every partition is done; those that cannot be continued have a problem then.

        Raises:
            OutputError: a file cannot be written.
        """
        pauses = Pauses(self.reader.patience)
        while not self.stop.is_set() and (left := [one for one in self.partitions if not one.is_done]):
            try:
                now = self.reader.metadata()
            except ClusterLostError as error:
                _give_up(left, error.problem)
                return
            if self._round(now, left):
                pauses.go_on()
            elif not self.stop.is_set() and not all(partition.is_done for partition in left) and not pauses.wait():
                _give_up(left, f"no progress for {self.reader.patience:.0f} s")
                return

    def _round(self, now: ClusterNow, left: Sequence[PulledPartition]) -> bool:
        """Ask all brokers at the same time until one thing goes wrong; return whether any copy has grown."""
        by_node: dict[int, list[PulledPartition]] = defaultdict(list)
        for partition in left:
            self._look_at(partition, now)
            node_id = now.leader(partition.key).node_id if partition.read_from is None else partition.read_from
            if node_id not in now.brokers:
                partition.said, partition.read_from = "it has no leader", None
            elif partition.problem is None:
                partition.doubt()
                by_node[node_id].append(partition)
        if not by_node:
            return False
        is_over = threading.Event()
        with ThreadPoolExecutor(len(by_node)) as pool:
            asking = [_Asking(self, now, node_id, some, is_over) for node_id, some in by_node.items()]
            asked = [pool.submit(one.run) for one in asking]
            try:
                self._wait(asked, is_over, are_all=sum(map(len, by_node.values())) == len(left))
                grown = [future.result() for future in asked]
            except BaseException:
                self.stop.set()
                is_over.set()
                self.reader.close()  # ends what the other threads wait for
                raise
        return any(grown)

    def _wait(self, asked: Sequence[Future[bool]], is_over: threading.Event, *, are_all: bool) -> None:
        """Wait for a round's end; one that leaves out partitions, which have no leader, ends soon."""
        while wait(asked, NOTE_EVERY_S).not_done:
            self.note()
            if not are_all:
                is_over.set()

    def _look_at(self, partition: PulledPartition, now: ClusterNow) -> None:
        """Notice a topic that was made again under the same name."""
        topic, known = now.topics.get(partition.facts.topic), partition.facts.topic_id
        if topic is not None and topic.topic_id is not None and known not in (None, str(topic.topic_id)):
            partition.problem = (
                f"the topic was made again: its id is {topic.topic_id}, that of the copy is {known}; pull it into "
                "another directory"
            )

    def say_once(self, words: str) -> None:
        """Tell what happens, each sentence once."""
        if words not in self._told:
            self._told.add(words)
            self.tell(words)


def _give_up(left: Collection[PulledPartition], problem: str) -> None:
    for partition in left:
        if not partition.is_done:
            partition.problem = f"{problem}: {partition.said}" if partition.said else problem
            partition.may_pass = True


@dataclass(slots=True)
class _Asking:
    """One broker in one round."""

    run_: Pulling
    now: ClusterNow
    node_id: int
    partitions: list[PulledPartition]
    is_over: threading.Event
    _pool: ThreadPoolExecutor = field(init=False)
    _has_grown: bool = False
    _ahead: tuple[Positions, Future[Fetched]] | None = None

    def run(self) -> bool:
        """Ask until all partitions are done or the round is over; return whether any copy has grown."""
        with ThreadPoolExecutor(1) as self._pool:
            return self._run()

    def _run(self) -> bool:
        grown_at = time.monotonic()
        try:
            while not self.is_over.is_set() and not self.run_.stop.is_set() and self.partitions:
                if self._ask() or self.run_.is_followed:
                    grown_at, self._has_grown = time.monotonic(), True
                elif time.monotonic() - grown_at > self.run_.reader.patience:
                    self.is_over.set()
                self.partitions = [partition for partition in self.partitions if not partition.is_done]
        except (OSError, ClusterError) as error:
            self._fail(f"broker {self.node_id}: {error}")
        except BaseException:
            self.is_over.set()
            raise
        return self._has_grown

    def _fail(self, said: str) -> None:
        self.is_over.set()
        self.run_.reader.drop(self.node_id)
        if not self.run_.stop.is_set():  # else it is this end that has closed
            self.run_.say_once(f"{said}; it is tried again")
        for partition in self.partitions:
            partition.said, partition.read_from = said, None

    def _epoch(self, key: TopicPartition) -> int:
        return self.now.leader(key).epoch

    def _ask(self) -> bool:
        """Send one request; return whether any copy has grown."""
        by_key = {partition.key: partition for partition in self.partitions}
        reader, pace = self.run_.reader, self.run_.pace
        answers, seconds = self._answers(self._positions())
        if not answers:
            if seconds <= 0:
                raise ClusterError("it answers nothing of what it was asked")
            self.run_.say_once(f"broker {self.node_id} holds this client back: a quota")
            self.is_over.wait(min(seconds, reader.patience))
            return True
        size_bytes = sum(len(answer["records"] or b"") for answer in answers.values())
        try:
            grown = sum(self._take(by_key[key], answer, is_empty=not size_bytes) for key, answer in answers.items())
            if size_bytes >= FETCH_BYTES // 2 and pace.bytes_per_second is None:
                self._ask_ahead()
        finally:
            for key in answers:
                by_key[key].flush()
        self.run_.advance(grown)
        pace.wait(size_bytes, self.is_over)
        return grown > 0

    def _positions(self) -> Positions:
        left = (partition for partition in self.partitions if not partition.is_done)
        return {partition.key: (self._epoch(partition.key), partition.fetch_offset) for partition in left}

    def _fetch(self, positions: Positions) -> Fetched:
        return self.run_.reader.fetch(self.node_id, positions, self.run_.pace.fetch_bytes, self.run_.rack)

    def _answers(self, positions: Positions) -> Fetched:
        """Return the response to a request that may have been sent already."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            answered = ahead[1].result()  # of another request too: the connection must be free of it
            if ahead[0] == positions:
                return answered
        return self._fetch(positions)

    def _ask_ahead(self) -> None:
        """Have the broker send what comes next while this is written; it never has more than one request to answer."""
        if (positions := self._positions()) and not self.is_over.is_set():
            self._ahead = positions, self._pool.submit(self._fetch, positions)

    def _take(self, partition: PulledPartition, answer: dict[str, Any], *, is_empty: bool) -> int:
        """Take a part of a response; return by how many offsets the copy has grown.

        Args:
            is_empty: whether the whole response has no batch.
        """
        if answer["error_code"] != NO_ERROR:
            self._refused(partition, answer["error_code"])
            return 0
        if (nearer := answer.get("preferred_read_replica", -1)) >= 0 and nearer != self.node_id:
            partition.read_from = nearer
            self.is_over.set()
            return 0
        before = partition.end_offset
        try:
            partition.take(answer, self._epoch(partition.key), is_empty=is_empty)
            partition.said = ""  # what went wrong before is over
        except UnsureError:
            self._compare_epochs(partition)
        except DivergedError as error:
            partition.problem = f"{error}: the log was truncated; pull it into another directory"
        except BrokerError as error:
            self._invalid(partition, error)
        return partition.end_offset - before

    def _invalid(self, partition: PulledPartition, error: BrokerError) -> None:
        """Ask for the same bytes once more, over another connection."""
        said = refusal(error, partition.end_offset)
        if partition.said == said:
            partition.problem = said
            return
        partition.said = said
        self.is_over.set()
        self.run_.reader.drop(self.node_id)

    def _refused(self, partition: PulledPartition, code: int) -> None:
        name = name_of(code)
        if code in REFUSALS:
            partition.problem = f"the broker refuses: {name}"
        elif code == OFFSET_OUT_OF_RANGE and partition.read_from is None:
            self._out_of_range(partition)
        else:
            partition.said, partition.read_from = f"broker {self.node_id} answers {name}", None
            self.run_.say_once(f"{partition.key[0]}-{partition.key[1]}: {partition.said}; it is tried again")
            self.is_over.set()

    def _out_of_range(self, partition: PulledPartition) -> None:
        """Note which: the log begins behind the end of the copy, or ends before it; or its last batch alone is gone."""
        key, end = partition.key, partition.end_offset
        starts, _ = self.run_.reader.list_offsets([key], EARLIEST, 0)
        ends, _ = self.run_.reader.list_offsets([key], LATEST, 0)
        if key not in starts or key not in ends:
            partition.said = f"broker {self.node_id} answers {name_of(OFFSET_OUT_OF_RANGE)}"
            self.is_over.set()
        elif starts[key] > end:
            partition.problem = (
                f"the log begins at {starts[key]} now, behind the end of the copy, {end}: what was between is gone; "
                "pull it into another directory"
            )
        elif ends[key] < end:
            partition.problem = (
                f"the log ends at {ends[key]}, before the end of the copy, {end}: it was truncated; pull it into "
                "another directory"
            )
        else:
            self._compare_epochs(partition)

    def _compare_epochs(self, partition: PulledPartition) -> None:
        """Tell a log that was cleaned, which goes on behind the copy, from one that was cut off and written again."""
        epoch, end = partition.last_epoch, partition.end_offset
        found, its_end = self.run_.reader.epoch_end(self.node_id, partition.key, epoch) if epoch >= 0 else (-1, -1)
        if found == epoch and its_end >= end:
            partition.is_sure = True
            return
        if found < 0:
            why = "no leader epoch tells whether it was cleaned or truncated"
        elif found < epoch:
            why = f"it has no records of leader epoch {epoch}: it was truncated"
        else:
            why = f"records of leader epoch {epoch} end at {its_end} there: it was truncated"
        partition.problem = (
            f"the log has another batch at the end of the copy, {end}, and {why}; pull it into another directory"
        )
