"""The ends of partitions by other topics' logs in the copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offsets_log.data_directory.copied_logs import CopiedLogs
    from offsets_log.session.session import Session


def lag_logs(session: Session, lag: bool | None) -> CopiedLogs | None:
    """Return the logs that tell ends; None if they are not asked for, or not there and not asked for explicitly."""
    if lag is False:
        return None
    logs = session.inputs.copied_logs
    if not logs:
        if lag:
            from offsets_log.data_directory.lag import NO_LOGS

            session.account.say(NO_LOGS)
            session.account.is_wrong = True
        return logs if lag else None
    return logs


def say_of_lag(session: Session, logs: CopiedLogs | None) -> None:
    """Report what could not be read of these logs, and count it."""
    if logs is None:
        return
    from offsets_log.data_directory.lag import BOUNDED

    if session.inputs.scope.is_bounded:
        session.account.say(BOUNDED)
    for words in logs.in_words():
        session.account.say(words)
    for damage in logs.damages:
        session.account.on_damage(damage)
