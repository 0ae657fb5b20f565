"""Options by which `clean` removes more than a round of the cleaner does, and what they ask for of a partition."""

from __future__ import annotations

from collections.abc import Callable, Set
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from cli.options import A_TIME, ERA_NAMES, HARDLY_MS, Duration, Time, UntilOffset

if TYPE_CHECKING:
    from offsets_log.broker.recovery import OpenLog
    from offsets_log.cleaner.drops import Drops
    from offsets_log.cleaner.round import Round
    from offsets_log.cleaner.settings import Settings
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.expiry import Retention
    from offsets_log.rows.asked_names import AskedNames
    from offsets_log.session.session import Session

_OPTIONS = (
    click.option(
        "--deep",
        is_flag=True,
        help="Write the smallest log with the same answers: clean the active segment too, and remove aborted "
        "transactions, and tombstones and markers that are not needed.",
    ),
    click.option(
        "--drop-record",
        metavar="[P:]N",
        type=UntilOffset(),
        multiple=True,
        help="Remove the record at offset N (in offsets partition P), such as one at which a load fails; repeatable.",
    ),
    click.option(
        "--drop-group",
        metavar="GLOB",
        multiple=True,
        help="Remove these groups, and everything that belongs to them; repeatable; names as of -g.",
    ),
    click.option("--keep-group", metavar="GLOB", multiple=True, help="Remove all groups except these; repeatable."),
    click.option(
        "--drop-expired",
        is_flag=True,
        help="Remove what a coordinator's expiry would remove at --now: what `expire` shows.",
    ),
    click.option(
        "--retention",
        type=Duration(HARDLY_MS),
        help="For --drop-expired: the broker's offsets.retention.minutes, as 7d or 10080m.  [default: the era's]",
    ),
    click.option(
        "--era",
        type=click.Choice(ERA_NAMES),
        default="modern",
        show_default=True,
        help="For --drop-expired: whose expiry rules.",
    ),
    click.option(
        "--until-offset",
        type=UntilOffset(),
        multiple=True,
        help="The log as it was when it ended at offset N (in offsets partition P, else in every one); repeatable.",
    ),
    click.option("--until-time", type=Time(), help=f"The log as it was then: {A_TIME}."),
)


def change_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The options' values.

    Attributes:
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

    @classmethod
    def of(cls, given: dict[str, Any]) -> Changes:
        """Make the changes from a command's parameters."""
        changes = cls(**{field.name: given[field.name] for field in fields(cls) if field.name in given})
        if changes.retention is not None and not changes.drop_expired:
            raise click.UsageError("--retention is for --drop-expired")
        return changes

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
        from offsets_log.cleaner.deep import clean_deep, round_of
        from offsets_log.cleaner.drops import dropped
        from offsets_log.disk.scratch import mapped

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
        from offsets_log.errors import InputError

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
        from offsets_log.cleaner.drops import Drops

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
        from offsets_log.rows.asked_names import AskedNames

        globs = self.drop_group if option == "--drop-group" else self.keep_group
        if option not in self.names:
            self.names[option] = AskedNames(globs, session.inputs.holds_group)
        return self.names[option]

    def _retention(self) -> Retention | None:
        from offsets_log.replay.expiry import ERAS

        return ERAS[self.era].retention(self.retention) if self.drop_expired else None
