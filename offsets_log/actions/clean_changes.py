"""What more than a round of the cleaner is asked for, and what that is of a partition."""

from __future__ import annotations

from collections.abc import Callable, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from offsets_log.cleaner.deep import clean_deep, round_of
from offsets_log.cleaner.drops import Drops, dropped
from offsets_log.disk.scratch import mapped
from offsets_log.errors import InputError
from offsets_log.replay.expiry import ERAS
from offsets_log.rows.asked_names import AskedNames

if TYPE_CHECKING:
    from offsets_log.broker.recovery import OpenLog
    from offsets_log.cleaner.round import Round
    from offsets_log.cleaner.settings import Settings
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.expiry import Retention
    from offsets_log.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is asked for.

    Attributes:
        deep: whether the smallest log with the same answers is wanted.
        drop_record: offsets partition, None for any, and the offset of a record that goes.
        drop_group, keep_group: globs or names of groups that go, or that alone stay.
        drop_expired: whether what expiry would remove goes, by the rules of ``era`` and with ``retention`` in ms.
        until_offset, until_time: the end of the log as it was, as of `Scope`.
        names: option → the groups it names, once the logs are known.
    """

    deep: bool
    drop_record: tuple[tuple[int | None, int], ...]
    drop_group: tuple[str, ...]
    keep_group: tuple[str, ...]
    drop_expired: bool
    retention: int | None
    era: str
    until_offset: tuple[tuple[int | None, int], ...]
    until_time: int | None
    names: dict[str, AskedNames] = field(default_factory=dict, compare=False)

    @property
    def are_some(self) -> bool:
        """Whether more is asked for than a round."""
        return any((
            self.deep, self.drop_record, self.drop_group, self.keep_group, self.drop_expired, self.until_offset,
            self.until_time is not None,
        ))  # fmt: skip

    def apply(
        self, session: Session, log: PartitionLog, opened: OpenLog, settings: Settings, stack: ExitStack
    ) -> tuple[PartitionLog, OpenLog, Round | None]:
        """Return the log to clean, and the outcome of a deep cleaning if one was asked for.

        Raises:
            OffsetsLogError: something of it cannot be read.
        """

        def store(pieces: Any) -> Any:
            return mapped(stack, pieces)

        in_bulk = session.engine.is_large_for("cleaning.sifting.sift")
        drops = self._drops(session, log)
        if drops:
            log, opened = dropped(log, opened, drops, settings, store, in_bulk=in_bulk)
        if not self.deep:
            return log, opened, None
        deep = clean_deep(log, opened, settings, store, in_bulk=in_bulk)
        return deep.log, deep.opened, round_of(deep, settings)

    def tell_of_others(self, session: Session, partitions: Set[int | None]) -> None:
        """Report options without effect: records of partitions that are not there, and globs that fit no group.

        Raises:
            InputError: no group at all would be kept.
        """
        for partition, offset in self.drop_record:
            if partition is not None and partition not in partitions:
                session.account.is_wrong = True
                session.account.say(
                    f"--drop-record {partition}:{offset} drops nothing: no such offsets partition was found"
                )
        for option, what in (("--drop-group", "drops nothing"), ("--keep-group", "keeps nothing")):
            names = self._asked(session, option)
            for words in names.remarks(option):
                session.account.say(words)
            if names.met:
                raise InputError(f"nothing is written: {option} {names.met[0]} is a group's name, and fits others, too")
            for glob in names.idle:
                session.account.is_wrong = True
                session.account.say(f"{option} {glob} {what}: no record names such a group")
        if self.keep_group and len(self._asked(session, "--keep-group").idle) == len(set(self.keep_group)):
            raise InputError(
                "nothing is written: no group is to be kept; offsets-log groups shows what groups there are"
            )

    def _drops(self, session: Session, log: PartitionLog) -> Drops:
        partition = log.offsets_partition
        has_names = bool(self.drop_group or self.keep_group)
        wanted: dict[str, Any] = {"keeps_group": self._keeps_group(session)} if has_names else {}
        return Drops(
            until=session.inputs.until(log),
            records=frozenset(offset for at, offset in self.drop_record if at in (None, partition)),
            retention=self._retention(),
            **wanted,
        )

    def _keeps_group(self, session: Session) -> Callable[[str], bool]:
        drops, keeps = self._asked(session, "--drop-group"), self._asked(session, "--keep-group")

        def keeps_group(group: str) -> bool:
            is_kept, is_dropped = keeps(group), bool(self.drop_group) and drops(group)
            return is_kept and not is_dropped

        return cache(keeps_group)

    def _asked(self, session: Session, option: str) -> AskedNames:
        globs = self.drop_group if option == "--drop-group" else self.keep_group
        if option not in self.names:
            self.names[option] = AskedNames(globs, session.inputs.holds_group)
        return self.names[option]

    def _retention(self) -> Retention | None:
        return ERAS[self.era].retention(self.retention) if self.drop_expired else None
