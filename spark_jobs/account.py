"""The report about a job that is a program: what was read, what could not be, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from offsets_log.errors import Damage, MissingLogError, OffsetsLogError
from offsets_log.log_format.completeness import Missing
from offsets_log.replay.problem import Problem
from offsets_log.rows.tables import Row, damage_row, partition_name
from offsets_log.words import counted

DAMAGE_SHOWN = 5


@dataclass(slots=True)
class Account:
    """The report about a run, besides its answer.

    Attributes:
        records, partitions: how many were read.
        words: notes and tails, one sentence each.
        lost: log that is missing without explanation.
        damages: what could not be read, as rows of the quarantine.
        is_wrong: whether the data directories are of several clusters, or files of theirs are broken.
    """

    records: int = 0
    partitions: int = 0
    corrupt: int = 0
    unsupported: int = 0
    words: list[str] = field(default_factory=list)
    lost: list[Missing] = field(default_factory=list)
    damages: list[Row] = field(default_factory=list)
    is_wrong: bool = False

    @classmethod
    def of(cls, facts: Iterable[Row], notes: Sequence[str], absent: Sequence[Missing]) -> Account:
        """Return the account of logs from their `Answers.facts`, in their order."""
        account = cls(words=[*notes], lost=[one for one in absent if one.is_lost])
        for one in facts:
            account.partitions += 1
            for name in ("records", "corrupt", "unsupported"):
                setattr(account, name, getattr(account, name) + one[name])
            account.words += [*(words for words in one["notes"] if words not in notes), *one["tails"]]
            account.lost += [Missing(**missing) for missing in one["lost"]]
            account.damages += one["damages"]
            if one["strays"]:
                account.is_wrong = True
                account.words.append(
                    f"offsets partition {partition_name(one['offsets_partition'])}: left out "
                    f"{counted(len(one['strays']), 'group')} ({', '.join(one['strays'][:DAMAGE_SHOWN])} …) that "
                    "another partition answers for"
                )
        return account

    def on_damage(self, damage: Damage) -> None:
        """Count and keep a piece beside the logs that could not be read."""
        self.damages.append(damage_row(damage))
        self.unsupported += damage.is_unsupported
        self.corrupt += not damage.is_unsupported

    def refuse(self) -> None:
        """Raise OffsetsLogError for what could not be read, or is missing."""
        if self.damages:
            raise damage_error(self.damages[0])
        if self.lost:
            raise MissingLogError(self.lost[0].in_words())

    @property
    def is_damaged(self) -> bool:
        """Whether something could not be read."""
        return bool(self.corrupt or self.unsupported)

    @property
    def has_harm(self) -> bool:
        """Whether something decides the exit status."""
        return bool(self.is_damaged or self.lost or self.is_wrong)

    def lines(self) -> Iterator[str]:
        """Yield the lines for standard error."""
        yield from self.words
        yield from (f"missing: {missing.in_words()}" for missing in self.lost)
        for facts in self.damages[:DAMAGE_SHOWN]:
            yield f"{facts['kind']}: {damage_error(facts)}"
        if self.is_damaged:
            yield f"not everything could be read: {self.corrupt} corrupt, {self.unsupported} unsupported"


def damage_error(facts: dict[str, Any]) -> OffsetsLogError:
    """Return the error of a damaged piece from its row."""
    place = {name: facts[name] for name in ("file", "position", "record_offset", "field")}
    return OffsetsLogError(facts["problem"], **place)


def load_in_words(facts: Row, profile: str) -> Iterator[str]:
    """Yield a sentence if a coordinator would not load a log."""
    if facts["load"] is not None:
        yield Problem(**facts["load"]).in_words(profile, partition_name(facts["offsets_partition"]))
