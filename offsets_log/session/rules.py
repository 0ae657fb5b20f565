"""Whose rules an answer follows: what the user asked for, else what the files show; where it matters, that is said."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from offsets_log.data_directory.whose_rules import MODERN, WhoseRules, whose_rules
from offsets_log.release_names import rules_in_words
from offsets_log.replay.profile import PROFILES, Profile
from offsets_log.replay.releases import profile_of, release_named
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.coordinator_state import CoordinatorState
    from offsets_log.session.session import Session

NAMED = 5
"""How many offsets are named that differ."""
BOTH_BELOW_BYTES = 4 << 20
"""Logs smaller than this are loaded by the other rules, too."""
Key = tuple[str, str, int, int | None]
"""Group, topic, partition, offsets partition."""


class Rules:
    """Whose rules a run follows.

    Args:
        asked: a release, or the name of a profile; None where nobody chose.

    Attributes:
        told: the answer, and what tells it.
    """

    def __init__(self, session: Session, asked: str | None) -> None:
        inputs = session.inputs
        self._release = None if asked is None or asked in PROFILES else release_named(asked)
        self.told = whose_rules(inputs.clusters, inputs.logs) if asked is None else WhoseRules(profile_of(asked))
        self._session = session
        self._is_asked = asked is not None
        self._doubt: str | None = None

    @property
    def name(self) -> str:
        """The name of the profile that a release is of, which decides how groups expire and what is served."""
        return self.told.profile

    @property
    def profile(self) -> Profile:
        """The rules themselves: those of the very release that was asked for."""
        if self._release is None:
            return PROFILES[self.name]
        return replace(self._release.profile, name=self._release.asked.name)

    @property
    def _named(self) -> str:
        return f"by the rules of {rules_in_words(self.profile.name)}"

    def in_words(self, *, is_loaded: bool = True) -> str:
        """Return what a result says of whose rules it follows: nothing where all rules lead to it.

        Where nothing tells whose rules to follow, and it makes a difference, that is told too.

        Args:
            is_loaded: whether the run's engine has loaded all logs, and so noted where rules may differ.
        """
        if self._is_asked:
            return f"; {self._named}"
        if self.told.is_sure:
            return "" if self.name == MODERN or not self._logs(is_loaded) else f"; {self._named}: {self.told.why}"
        if (doubt := self.doubt(is_loaded=is_loaded)) is None:
            return ""
        self._session.account.is_wrong |= self._tries_both
        self._session.account.say(doubt)
        return f"; {self._named}, for nothing tells which release wrote the log"

    def doubt(self, *, is_loaded: bool = True) -> str | None:
        """Return what is doubtful as nothing tells whose rules to follow; None where all rules lead to the same."""
        if self.told.is_sure or not self._session.inputs.are_open:
            return None
        if self._doubt is None:
            logs = self._logs(is_loaded)
            self._doubt = self._in_doubt(logs) if self._tries_both else self._untold(logs)
        return self._doubt or None

    @property
    def _tries_both(self) -> bool:
        """Whether the logs are small enough: by their size alone, so that it does not depend on what is compiled."""
        logs = self._session.inputs.logs
        return sum(log.bytes_to_read or log.size_bytes for log in logs) < BOTH_BELOW_BYTES

    def _logs(self, is_loaded: bool) -> list[PartitionLog]:
        """Return the logs of which it depends on the rules what is served, as far as the engine has noted it."""
        logs, noted = self._session.inputs.logs, self._session.engine.by_rules
        return [log for log in logs if id(log) in noted] if is_loaded else logs

    def _untold(self, logs: list[PartitionLog]) -> str:
        """Return the doubt about logs that are too large to be loaded by both rules; empty without one."""
        if not logs:
            return ""
        return (
            "which release wrote the log is not told, and it has transactions, which brokers up to 3.9 may resolve "
            f"otherwise: shown is --release {self.told.release}; compare it with --release {self.told.other_release}"
        )

    def _in_doubt(self, logs: list[PartitionLog]) -> str:
        """Return the doubt about some logs; empty without one."""
        differing = self._differing(logs) if logs else []
        if not differing:
            return ""
        groups = dict.fromkeys(key[0] for key, _, _ in differing)
        named = "; ".join(
            f"{shlex.quote(group)} {topic}/{partition}: {_shown(mine)}, or {_shown(other)}"
            for (group, topic, partition, _), mine, other in differing[:NAMED]
        )
        more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
        return (
            "which release wrote the log is not told, and here it matters: by the rules of brokers up to 3.9, "
            f"{counted(len(differing), 'offset')} of {counted(len(groups), 'group')} would be answered otherwise "
            f"({named}{more}). Shown is --release {self.told.release}, --release {self.told.other_release} shows the "
            "other answer"
        )

    def _differing(self, logs: list[PartitionLog]) -> list[tuple[Key, int | None, int | None]]:
        """Return the offsets that the other rules would answer otherwise: key, answer, the other answer."""
        kept = self._session.engine.kept
        mine = self._served([log for log in logs if id(log) not in kept], self.name)
        for log in logs:
            if id(log) in kept:
                inputs = self._session.inputs
                mine |= _served_of(log, kept[id(log)].showing(inputs.shows_group, inputs.shows_topic))
        others = self._served(logs, self.told.other)
        keys = sorted({*mine, *others}, key=lambda key: (key[:3], key[3] or 0))
        return [(key, mine.get(key), others.get(key)) for key in keys if mine.get(key) != others.get(key)]

    def _served(self, logs: list[PartitionLog], profile: str) -> dict[Key, int]:
        scope = self._session.inputs.scope
        aside = self._session.bounded(scope.until_offset, scope.until_time)
        aside.inputs.logs = logs
        aside.engine.decides = self._session.engine.decides
        served: dict[Key, int] = {}
        for log, state, _ in aside.engine.load_all(PROFILES[profile], whole_groups=False) if logs else ():
            served |= _served_of(log, state)
        return served


def _served_of(log: PartitionLog, state: CoordinatorState) -> dict[Key, int]:
    return {
        (value.group, value.topic, value.partition, log.offsets_partition): value.committed_offset
        for value in state.iter_served()
    }


def _shown(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
