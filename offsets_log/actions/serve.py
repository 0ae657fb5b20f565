"""A copy that answers Kafka's clients: its listeners, each at its moment, and what moves them in time."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from offsets_log.actions.serve_asked import ServeAsked
from offsets_log.asked_time import OfLog
from offsets_log.cluster.server import Server
from offsets_log.errors import InputError, OffsetsLogError
from offsets_log.messages.internal_topics import SHARE_GROUP_STATE
from offsets_log.replay.expiry import ERAS
from offsets_log.replay.group import SHARE
from offsets_log.serving.answers import respond
from offsets_log.serving.state import Served
from offsets_log.serving.topics import UNKNOWN
from offsets_log.session.account import Account
from offsets_log.session.inputs import read_topic_ids
from offsets_log.session.moments import Moments, shown_moment
from offsets_log.session.rules import Rules
from offsets_log.session.stops import of_unread
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.columnar.scan.time_bound import Stop
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.session.session import Session

Answer = TypeVar("Answer")

PLAY_EVERY_S = 1.0
NAMED = 10
"""So many partitions that are not there are named."""
COMMANDS = "at TIME, step SECONDS, end, quit"


@dataclass(slots=True)
class _Listener:
    """One of them.

    Attributes:
        at: its moment, epoch ms; None for the end of the logs.
    """

    server: Server
    at: int | None
    address: str = ""


def moments_of(session: Session, asked: ServeAsked, profile: str | None, topic_ids: str | None) -> Moments:
    """Return the states of a session that may be served.

    Args:
        profile: whose rules to follow; None for what the files show.
        topic_ids: a file with a JSON object of topic ids and names; None for no more than the files tell.

    Raises:
        OffsetsLogError: something cannot be read.
    """
    rules = Rules(session, profile)
    expiry = None if asked.now is None else (asked.now, ERAS[rules.name].retention(asked.retention))
    for words in session.inputs.iter_starts():
        session.account.say_once(words)
    moments = Moments(session, rules.profile, read_topic_ids(topic_ids), asked.end_offsets, expiry)
    if (doubt := rules.doubt(is_loaded=False)) is not None:
        session.account.is_wrong = True
        session.account.say(doubt)
    return moments


class Serving:
    """A copy that is served.

    Args:
        show: takes the address of a listener, its moment and what it has, with tabs between them.
        time_of: returns the moment that a text names, in epoch ms or by the logs; raises InputError.
    """

    def __init__(
        self, moments: Moments, asked: ServeAsked, show: Callable[[str], None], time_of: Callable[[str], int | OfLog]
    ) -> None:
        self._moments, self._serving = moments, asked
        self._show, self._time_of = show, time_of
        self._say = moments.session.account.say
        self._listeners: list[_Listener] = []
        self._moving = asyncio.Lock()
        self._served = [moments.load(moments.session), *map(moments.at, asked.at[1:])]

    async def begin(self) -> None:
        """Listen, and say what is served and what lacks. Raises InputError."""
        bound = self._moments.session.inputs.scope.until_time
        for number, (one, at) in enumerate(zip(self._served, self._serving.at or (bound,), strict=True)):
            await self._listen(one, at, number)
        account = self._moments.session.account
        for words in self._lacks(self._served[0]):
            account.is_wrong = account.is_wrong or not account.inputs.scope.offsets_partition
            self._say(words)
        if self._serving.end_offsets != UNKNOWN:
            self._say_of_logs(account)
        for words in (*self._doubts(self._served[0]), *self._openness()):
            self._say(words)
        self._served.clear()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until it is told to stop."""
        playing = None if self._serving.step is None else asyncio.create_task(self._play(self._serving.step))
        try:
            await stop.wait()
        finally:
            if playing is not None:
                playing.cancel()
            for listener in self._listeners:
                listener.server.close()

    async def _listen(self, served: Served, at: int | None, number: int) -> None:
        host, port = self._serving.listen
        server = Server(partial(respond, served), self._say, advertised=self._serving.advertise)
        try:
            host, port = await server.listen((host, port and port + number))
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port and port + number}: {error.strerror or error}") from None
        listener = _Listener(server, at, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        self._listeners.append(listener)
        self._tell(listener, served)
        if number:  # of the first it was said when the logs were opened
            self._say_of_beyond(at)
            self._say_of_stops(self._moments.stops_at(at))

    def _tell(self, listener: _Listener, served: Served) -> None:
        counts = f"{counted(len(served.groups), 'group')}, {counted(len(served.offsets), 'offset')}"
        is_bounded = bool(self._moments.session.inputs.scope.until_offset)
        end = "at --until-offset" if is_bounded else "at the end of the logs"
        moment = end if listener.at is None else f"at {shown_moment(listener.at)}"
        self._show(f"{listener.address}\t{moment}\t{counts}")

    def _say_of_beyond(self, at: int | None) -> None:
        """Report a moment that is not within the logs."""
        if words := self._moments.beyond(at):
            self._say(words)

    def _say_of_stops(
        self, stops: Iterable[tuple[PartitionLog, Stop]], told: Container[tuple[int | None, int]] = ()
    ) -> None:
        """Report logs that end too early at a moment, but those of which it was said that they end at that place."""
        for words in of_unread(stops, is_told=lambda log, stop: _place(log, stop) in told):
            self._say(words)

    def _ends_only(self) -> int:
        """Return of how many partitions an archive has only the end."""
        partitions = self._moments.session.inputs.user_partitions
        return sum(bool(one.base_offsets()) and one.dated_from > one.base_offsets()[0] for one in partitions)

    def _lacks(self, served: Served) -> Iterator[str]:
        """Yield what is not served because it is not in the copy, one sentence each; the exit status says so too."""
        there = served.offsets_partitions
        absent = (there.count or 0) - sum(number < (there.count or 0) for number in there.present)
        if absent > 0:
            first = ", ".join(map(str, islice(there.absent(), NAMED)))
            yield (
                f"{counted(absent, 'offsets partition')} of {there.count} ({first}"
                f"{f' and {absent - NAMED} more' if absent > NAMED else ''}) {'is' if absent == 1 else 'are'} not in "
                "this copy: groups in there are not served, and who asks for one is told UNKNOWN_SERVER_ERROR"
            )

    def _say_of_logs(self, account: Account) -> None:
        """Report what was found to be wrong with other topics' logs when their ends were looked for."""
        logs = account.inputs.copied_logs
        for words in logs.in_words():
            self._say(words)
        for damage in logs.damages:
            account.on_damage(damage)

    def _doubts(self, served: Served) -> Iterator[str]:
        """Yield what clients may take for more than it is, one sentence each."""
        reading = self._moments.session.inputs.scope
        unknown = sum(len(topic.partitions) - len(topic.ends) for topic in served.topics.values())
        if unknown:
            yield (
                f"the ends of {counted(unknown, 'partition')} are not known: kafka-consumer-groups of 4.x shows them "
                "as -, other tools as -1 with a lag below 0; --end-offsets committed gives them an end"
            )
        yield from self._unlike(served)
        ends_only = self._ends_only()
        if ends_only:
            yield (
                f"of {counted(ends_only, 'partition')} of other topics the archive gives the end alone: consumers are "
                "refused what is before; unpack it to serve all records"
            )
        if reading.until_offset:
            yield "other topics end where their copies end, not where they ended at --until-offset"
        failed = [partition for partition, problem in self._moments.failures.items() if problem is not None]
        if failed:
            yield (
                f"the load of {counted(len(failed), 'offsets partition')} would end early in a broker "
                f"({', '.join(map(str, failed[:5]))}): what can be read is served; see offsets-log check"
            )

    def _unlike(self, served: Served) -> Iterator[str]:
        """Yield where filters, the moment or the release leave less or other than users expect."""
        inputs = self._moments.session.inputs
        if inputs.scope.group and not served.groups:
            yield "no group fits --group"
        elif inputs.scope.topic and not len(served.offsets):
            yield "no offset is of a topic that fits --topic"
        shares = sum(group.kind == SHARE for group in served.groups.values())
        is_copied = inputs.copied_logs.partition_count(SHARE_GROUP_STATE) > 0
        if shares and not (served.has_share_states and is_copied):
            why = (
                "they are told at the end of the logs only" if is_copied else f"{SHARE_GROUP_STATE} is not in this copy"
            )
            yield f"of {counted(shares, 'share group')} no offsets are served: {why}"

    def _openness(self) -> Iterator[str]:
        """Yield a word if others than this machine reach a listener."""
        host = self._serving.listen[0]
        try:
            is_loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_loopback = host == "localhost"
        if not is_loopback:
            yield (
                f"{host} is not the loopback address: everyone who reaches this port reads the names of groups, and "
                "their members' ids and hosts; there is no login and no encryption"
            )

    # ------------------------------------------------------------------------------------- moving in time

    async def take(self, line: str, stop: asyncio.Event) -> None:
        """Do what a line says; ``COMMANDS`` are what it may say."""
        command, _, rest = line.strip().partition(" ")
        match command:
            case "":
                return
            case "quit":
                stop.set()
            case "at" if len(self._listeners) > 1:
                self._say(f"there are {len(self._listeners)} listeners: only step and end move them together")
            case "at":
                await self._move_all(lambda before: self._moment(rest))
            case "end":
                await self._move_all(lambda before: None)
            case "step":
                await self._move_all(lambda before: _stepped(before, rest))
            case _:
                self._say(f"{command!r} is none of: {COMMANDS}")

    async def _move_all(self, moved: Callable[[int | None], int | None]) -> None:
        for listener in self._listeners:
            try:
                served = await self._move(listener, moved(listener.at))
            except OffsetsLogError as error:
                self._say(str(error))
                return
            self._tell(listener, served)
            self._say_of_beyond(listener.at)
            self._say_of_stops(await self._aside(self._moments.stops_at, listener.at))

    def _moment(self, text: str) -> int:
        """Return the moment that a text names. Raises InputError."""
        asked = self._time_of(text)
        if not isinstance(asked, OfLog):
            return asked
        if (end_ms := self._moments.session.inputs.newest_ms) is None:
            raise InputError(f"{text} depends on where the logs end, which is not known without reading them")
        self._say(asked.in_words(end_ms))
        return asked.at(end_ms)

    async def _move(self, listener: _Listener, at: int | None) -> Served:
        """Exchange what a listener serves; requests are answered from the state before until the new one is there."""
        async with self._moving:
            served = await self._aside(self._moments.at, at)
            listener.server.respond, listener.at = partial(respond, served), at
            return served

    async def _aside(self, answer: Callable[[int | None], Answer], at: int | None) -> Answer:
        """Return what is answered of a moment, while requests are answered too."""
        return await asyncio.get_running_loop().run_in_executor(None, answer, at)

    async def _play(self, speed: float) -> None:
        """Go forward in the log as time passes."""
        listener = self._listeners[0]
        told = _places(self._moments.stops_at(listener.at))
        while True:
            began, at = time.monotonic(), listener.at
            await asyncio.sleep(PLAY_EVERY_S)
            if at is not None and at == listener.at:
                passed_ms = round((time.monotonic() - began) * 1000 * speed)
                try:
                    await self._move(listener, at + passed_ms)
                    if (words := self._moments.beyond(listener.at)) and not self._moments.beyond(at):
                        self._say(words)
                    stops = await self._aside(self._moments.stops_at, listener.at)
                    self._say_of_stops(stops, told)
                    told |= _places(stops)
                except OffsetsLogError as error:
                    self._say(str(error))


def _places(stops: Iterable[tuple[PartitionLog, Stop]]) -> set[tuple[int | None, int]]:
    """Return where logs end too early."""
    return {_place(log, stop) for log, stop in stops if stop.batches}


def _place(log: PartitionLog, stop: Stop) -> tuple[int | None, int]:
    return log.offsets_partition, stop.record_offset


def _stepped(before: int | None, text: str) -> int:
    if before is None:
        raise InputError("this is the end of the logs: go to a moment first, with at TIME")
    try:
        return before + round(float(text) * 1000)
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is no number of seconds") from None
