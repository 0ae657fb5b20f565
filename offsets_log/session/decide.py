"""The outcome of open transactions by the copy of the transaction coordinator's log, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from offsets_log.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from offsets_log.data_directory.decisions import Outcomes
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.partial import OffsetAndMetadata
    from offsets_log.session.inputs import Inputs
    from offsets_log.session.session import Session


@dataclass(frozen=True, slots=True)
class DecideOptions:
    """What is asked of open transactions.

    Attributes:
        decide: whether to end transactions whose outcome is certain.
        now_ms: the time at which transactions have timed out; None if none is asked about.
    """

    decide: bool = False
    now_ms: int | None = None


def told_outcomes(inputs: Inputs, now_ms: int | None) -> Outcomes | None:
    """Return what tells outcomes; None without a copy of that topic, or if the run ends before the log does."""
    return None if inputs.scope.is_bounded else inputs.outcomes(now_ms)


def outcomes_of(session: Session, now_ms: int | None) -> Outcomes | None:
    """Return `told_outcomes`; what could not be read of that topic is damage of this run."""
    outcomes = told_outcomes(session.inputs, now_ms)
    for damage in () if outcomes is None else session.inputs.transaction_states.damages:
        session.account.on_damage(damage)
    return outcomes


Open = list[tuple["PartitionLog", "Sequence[OffsetAndMetadata]"]]
"""The offsets of open transactions in each log, whatever filters show."""


def say_of_hanging(session: Session, opened: Open) -> None:
    """Report open transactions that nobody will ever end, if some of their offsets would be shown."""
    inputs = session.inputs
    outcomes = told_outcomes(inputs, None) if any(pending for _, pending in opened) else None
    if outcomes is None:
        return
    from offsets_log.restore.doubts import named

    found = [(log, value) for log, pending in opened for value in outcomes.hanging(log, pending)]
    found = [(log, one) for log, one in found if inputs.shows_group(one.group) and inputs.shows_topic(one.topic)]
    if count := len({(log.offsets_partition, value.producer_id) for log, value in found}):
        session.account.say(
            f"{counted(count, 'open transaction is', 'open transactions are')} hanging, with "
            f"{counted(len(found), 'offset')} of {named(sorted({value.group for _, value in found}))}: nobody will "
            f"ever end {'it' if count == 1 else 'them'}: offsets-log transactions prints what does, and the runbook "
            '"A transaction hangs" says more'
        )


def begin_to_decide(session: Session, decide: DecideOptions) -> Outcomes | None:
    """Let the engine decide, if that was asked for; return what tells outcomes, as `outcomes_of`."""
    outcomes = outcomes_of(session, decide.now_ms)
    if decide.decide:
        session.engine.decides = outcomes
        if outcomes is None:
            from offsets_log.data_directory.decisions import NO_STATES

            session.account.say(NO_STATES)
            session.account.is_wrong = True
    return outcomes


def decide_if_asked(session: Session, decide: DecideOptions) -> None:
    """Do that for commands that show no outcomes: only if they decide they read what tells them."""
    if decide.decide:
        begin_to_decide(session, decide)


def say_of_decided(session: Session) -> None:
    """Report what was decided, what was not, and where a marker is missing."""
    if session.engine.decides is not None:
        for words in session.engine.decides.in_words():
            session.account.say(words)
