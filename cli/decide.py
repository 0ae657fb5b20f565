"""``--decide``: the outcome of open transactions by the copy of the transaction coordinator's log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from cli.options import Time

if TYPE_CHECKING:
    from cli.options import ReadOptions
    from cli.session import Session
    from offsets_log.data_directory.decisions import Outcomes


@dataclass(frozen=True, slots=True)
class DecideOptions:
    """The values of `decide_options`.

    Attributes:
        decide: whether to end transactions whose outcome is certain.
        now_ms: the time at which transactions have timed out; None if none is asked about.
    """

    decide: bool = False
    now_ms: int | None = None


DECIDE = click.option(
    "--decide",
    is_flag=True,
    help="End the open transactions that are committed or aborted by __transaction_state in the copy, as if their "
    "markers were at the log's end.",
)
TIMED_OUT_BY = click.option(
    "--now",
    type=Time(),
    help="Show which open transactions would have timed out by then: epoch ms, ISO 8601 (UTC), or 2h for two hours "
    "ago.",
)


def decide_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add both options to a command, which gets them as `decide`."""

    @wraps(command)
    def with_decide(*args: Any, decide: bool, now: int | None, **more: Any) -> None:
        command(*args, decide=DecideOptions(decide, now), **more)

    return DECIDE(TIMED_OUT_BY(with_decide))


def check_usage(reading: ReadOptions, decide: bool, *, as_broker: bool = False) -> None:
    """Raise UsageError for what cannot be decided."""
    if not decide:
        return
    if as_broker:
        raise click.UsageError("--decide and --as-broker exclude each other: a broker that starts decides nothing")
    if is_bounded(reading):
        from offsets_log.data_directory.decisions import BOUNDED

        raise click.UsageError(BOUNDED)


def is_bounded(reading: ReadOptions) -> bool:
    """Return whether less than the whole log is read: other topics only tell the state at its end."""
    return bool(reading.until_offset) or reading.until_time is not None


def outcomes_of(session: Session, now_ms: int | None) -> Outcomes | None:
    """Return what tells outcomes; None without a copy of that topic, or if the run ends before the log does."""
    inputs = session.inputs
    if is_bounded(inputs.reading) or (outcomes := inputs.outcomes(now_ms)) is None:
        return None
    for damage in inputs.transaction_states.damages:
        session.account.on_damage(damage)
    return outcomes


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


def say_of_decided(session: Session) -> None:
    """Report what was decided, what was not, and where a marker is missing."""
    if session.engine.decides is not None:
        for words in session.engine.decides.in_words():
            session.account.say(words)
