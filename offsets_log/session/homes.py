"""Groups whose records are in several offsets partitions, or in one that is not theirs: which count, and what is said.

Whichever command asks, the partition that a group's name leads to answers for it (`broker.home`). What others have is
left out and told; where nothing tells which counts, nothing is left out.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from offsets_log.broker.home import Homes
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partition_count import DOUBTED, PartitionCount, doubt_in_words
from offsets_log.replay.profile import Profile
from offsets_log.rows.tables import Row
from offsets_log.session.inputs import SHOWN_BY_GROUPS, TOLD_BY
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.session.session import Session

NAMED = 10
"""Maximum number of groups that a sentence names."""
COMMITTED_AT = ("commit_timestamp_ms", "last_commit_timestamp_ms")
"""Columns that tell when a row was committed, whichever it has."""


@dataclass(slots=True)
class Counted:
    """Rows of one kind of place, counted."""

    rows: int = 0
    groups: dict[str, None] = field(default_factory=dict)
    partitions: set[int | None] = field(default_factory=set)

    def add(self, group: str, partition: int | None) -> None:
        """Count a row."""
        self.rows += 1
        self.groups[group] = None
        self.partitions.add(partition)


@dataclass
class Places:
    """Where a run finds groups, noted log by log; afterwards its rows are settled.

    Attributes:
        unit: what a row is, in words.
        of_all: whether all groups of a log are noted; else its first records help to show how many partitions there
            are.
    """

    session: Session
    profile: Profile
    unit: str = "offset"
    of_all: bool = True
    _found: list[tuple[int | None, Collection[str]]] = field(default_factory=list)

    def add(self, log: PartitionLog, groups: Collection[str]) -> None:
        """Note all groups of a log, whichever are shown."""
        self._found.append((log.offsets_partition, groups))

    def passing(self, loaded: Iterable[Any]) -> Iterator[Any]:
        """Pass on tuples that begin with a log and its state, and note the groups."""
        for part in loaded:
            log, state = part[:2]
            self.add(log, all_groups(state))
            yield part

    @cached_property
    def homes(self) -> Homes:
        """What was noted; only after all logs."""
        elsewhere = [(number, ()) for number in self.session.inputs.read_elsewhere]
        return Homes([*elsewhere, *self._found], self._count)

    @property
    def _count(self) -> PartitionCount:
        inputs = self.session.inputs
        return inputs.count_of_groups(self._found) if self.of_all else inputs.shown_count

    @cached_property
    def left_out(self) -> set[tuple[int, str]]:
        """Offsets partitions and groups of which no row counts."""
        return self.homes.left_out(self.profile)

    @property
    def has_something(self) -> bool:
        """Whether any group is not where it belongs, or in several logs."""
        return bool(self.homes.strays or self.homes.doubled or self.homes.count.source in DOUBTED)

    def settled(self, rows: list[Row]) -> list[Row]:
        """Return the rows that count, and tell of the others."""
        if not self.has_something:
            return rows
        kept = [row for row in rows if (row["offsets_partition"], row["group"]) not in self.left_out]
        others = [row for row in rows if (row["offsets_partition"], row["group"]) in self.left_out]
        self.tell(kept, others)
        return kept

    def settled_document(self, document: Row) -> Row:
        """Return the tables of a document that have groups, with the rows that count, and tell of the others."""
        if not self.has_something:
            return {}
        others = {
            name: [row for row in document[name] if (row["offsets_partition"], row["group"]) not in self.left_out]
            for name in ("offsets", "pending", "orphans")
        }
        return {"groups": self.settled(document["groups"]), **others}

    def tell(self, kept: Sequence[Row], others: Sequence[Row]) -> None:
        """Tell of rows that were left out, and of those that stay though nobody may be answered with them."""
        for sentence in (*self._of_left_out(kept, others), *self._of_kept(kept)):
            self._say(sentence)
        self.tell_of_count()

    def tell_of_count(self) -> None:
        """Tell what groups speak against the number of offsets partitions."""
        if sentence := doubt_in_words(self.homes.count, self._found):
            self._say(sentence)

    def _of_left_out(self, kept: Sequence[Row], others: Sequence[Row]) -> Iterator[str]:
        groups, superseded = {row["group"] for row in others}, self.homes.superseded()
        answers = {_key(row): _committed_ms(row) for row in kept if row["group"] in groups}
        both, alone, ages = Counted(), Counted(), Counter[str]()
        for row in others:
            found = both if (row["offsets_partition"], row["group"]) in superseded else alone
            found.add(row["group"], row["offsets_partition"])
            if found is both:
                ages[_age(_committed_ms(row), answers.get(_key(row), _NO_ANSWER))] += 1
        if both.rows:
            told = ", ".join(f"{ages[age]} {age}" for age in AGES if ages[age])
            yield (
                f"{_named(both)} {_are(both.groups, 'has', 'have')} records in more than one offsets partition: shown "
                f"is what {_are(both.groups, 'its', 'their')} own has ({self._count_in_words}). "
                f"{counted(both.rows, self.unit)} of others {_are(range(both.rows))} left out"
                + (f", {told}" if told else "")
                + f": {_command(both)} shows {_are(range(both.rows), 'it', 'them')}"
            )
        if alone.rows:
            yield (
                f"{_named(alone)} {_are(alone.groups)} only in an offsets partition that is not "
                f"{_are(alone.groups, 'its', 'their')} own ({self._count_in_words}), where no broker looks: "
                f"{counted(alone.rows, self.unit)} {_are(range(alone.rows))} left out: {_command(alone)} shows "
                f"{_are(range(alone.rows), 'it', 'them')}, offsets-log rescue offers what was committed"
            )

    def _of_kept(self, kept: Sequence[Row]) -> Iterator[str]:
        unread, cached, doubled = Counted(), Counted(), Counted()
        for row in kept:
            group, partition = row["group"], row["offsets_partition"]
            home = self.homes.strays.get((partition, group))
            if home is not None:
                (cached if self.homes.is_read(home) else unread).add(group, partition)
            elif group in self.homes.doubled:
                doubled.add(group, partition)
        for found, why in ((unread, ", where a broker looks, was not read"), (cached, " has nothing of it")):
            if found.rows:
                yield (
                    f"{_named(found)} {_are(found.groups)} shown from an offsets partition that is not "
                    f"{_are(found.groups, 'its', 'their')} own ({self._count_in_words}): "
                    f"{counted(found.rows, self.unit)}. {_are(found.groups, 'Its', 'Their')} own{why}"
                    + ("; a broker that leads both answers with this" if found is cached else "")
                )
        if doubled.rows:
            yield (
                f"{_named(doubled)} {_are(doubled.groups)} in more than one log, and nothing here tells which counts: "
                f"{counted(doubled.rows, self.unit)}, all of them, {_are(range(doubled.rows))} shown. --partitions N "
                "tells how many offsets partitions there are, --as-partition N of which one nameless files are"
            )

    def tell_of_groups(self, how: str) -> None:
        """Tell of groups that are in several partitions or in one that is not theirs, and how they are shown."""
        self.tell_of_count()
        several = Counter(group for _, groups in self._found for group in groups)
        both = {group: None for group, logs in several.items() if logs > 1}
        alone = {group: None for _, group in self.homes.strays if group not in both}
        if both:
            own = f"what {_are(both, 'its', 'their')} own has counts now ({self._count_in_words})"
            which = "which of them counts is not known here" if self.homes.count.is_guess else own
            self._say(
                f"{_named(Counted(groups=both))} {_are(both, 'has', 'have')} records in more than one offsets "
                f"partition: {how}, and {which}"
            )
        if alone:
            self._say(
                f"{_named(Counted(groups=alone))} {_are(alone)} only in an offsets partition that is not "
                f"{_are(alone, 'its', 'their')} own ({self._count_in_words}), where no broker looks"
            )

    def tell_of_unanswered(self) -> None:
        """Tell of groups that no broker answers with, from a partition that is not theirs."""
        self.tell_of_count()
        found = Counted()
        for partition, group in sorted(self.homes.unanswered(self.profile)):
            found.add(group, partition)
        if found.groups:
            self._say(
                f"{_named(found)} {_are(found.groups, 'has', 'have')} records in an offsets partition that is not "
                f"{_are(found.groups, 'its', 'their')} own ({self._count_in_words}), which no broker answers with: "
                f"{_command(found)} shows what it is"
            )

    def _say(self, sentence: str) -> None:
        self.session.account.is_wrong = True
        self.session.account.say(sentence)

    @property
    def _count_in_words(self) -> str:
        count = self.homes.count
        return f"of {count.number}, as {TOLD_BY.get(count.source, SHOWN_BY_GROUPS)}"


AGES = ("older than what is shown", "newer than what is shown", "of keys that are not shown")


def _are(what: Sized, one: str = "is", many: str = "are") -> str:
    return one if len(what) == 1 else many


def _named(found: Counted) -> str:
    names = [shlex.quote(name) for name in list(found.groups)[:NAMED]]
    more = len(found.groups) - len(names)
    return f"{counted(len(found.groups), 'group')} ({', '.join(names)}{f' and {more} more' if more else ''})"


def _command(found: Counted) -> str:
    numbers = sorted(number for number in found.partitions if number is not None)
    return " ".join(["offsets-log offsets", *(f"-p {number}" for number in numbers)])


_NO_ANSWER = object()


def _age(committed_ms: Any, answer_ms: Any) -> str:
    """Return how old a row is beside the answer, one of `AGES`; nothing where that is not known."""
    if answer_ms is _NO_ANSWER:
        return AGES[2]
    if committed_ms is None or answer_ms is None or committed_ms == answer_ms:
        return ""
    return AGES[0] if committed_ms < answer_ms else AGES[1]


def _key(row: Row) -> tuple[Any, ...]:
    return row["group"], row.get("kind"), row.get("topic"), row.get("partition")


def _committed_ms(row: Row) -> int | None:
    found: int | None = next((row[name] for name in COMMITTED_AT if name in row), None)
    return found


def all_groups(state: CoordinatorState) -> Collection[str]:
    """Return the groups of a state, whichever are shown."""
    return state.groups.keys() | state.hidden_groups if state.hidden_groups else state.groups
