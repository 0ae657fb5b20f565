"""Committed offsets as files that set them again, right on another cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offsets_log.actions.plan_files import write_files
from offsets_log.actions.rescue import rescue_options
from offsets_log.coordinator_document import Memory
from offsets_log.restore.directory import rescue_files
from offsets_log.restore.plan import rows_of
from offsets_log.restore.rescue import make_plan
from offsets_log.restore.rows import counted_rows
from offsets_log.rows.tables import to_json
from offsets_log.session.brokers import Brokers
from offsets_log.session.rules import Rules
from offsets_log.session.share_offsets import share_offsets_of
from offsets_log.translation.names import check_apart
from offsets_log.translation.share_starts import asked_of
from offsets_log.translation.translated_plan import in_words, translated_plan
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.actions.translation import Translation
    from offsets_log.replay.profile import Profile
    from offsets_log.rows.tables import Row
    from offsets_log.session.scope import BrokerOptions
    from offsets_log.session.session import Session


def translate(session: Session, translation: Translation, profile: str | None, broker: BrokerOptions, to: str) -> None:
    """Write the offsets of a copy, as they are on the other cluster, into a new directory.

    Args:
        profile: whose rules to follow; None for what the files show.
        broker: whether the offsets are those of a broker which starts with these files.

    Raises:
        AskedError: two groups or topics would get one name.
        OffsetsLogError: something cannot be read or written, or the other cluster does not answer.
    """
    with session.new_directory(to) as directory, translation:
        translation.connect(session.account.say)
        rules = Rules(session, profile)
        plan = _plan_of_source(session, rules.profile, broker)
        rows = list(asked_of(plan))
        if not rows and (session.inputs.scope.filters):
            directory.rmdir()
            session.account.is_wrong = True
            session.account.finish(f"nothing to translate; {to} is not written", found=0)
            return
        check_apart((row["topic"] for row in rows), translation.rename_topic, "--rename")
        check_apart((row["group"] for row in rows), translation.rename_group, "--rename-group")
        places = translation.places(session.inputs.copied_logs, session.inputs.clusters, rows)
        for damage in translation.damages:
            session.account.on_damage(damage)
        plan["problems"] = session.account.damages
        damaged = (
            f"pieces of topics' logs that could not be read, see problems in plan.json: {len(translation.damages)}"
        )
        doubts = [*([damaged] if translation.damages else ()), *translation.doubts]
        new = translated_plan(plan, places, translation.rename_group, doubts, translation.with_log_ends)
        write_files(directory, rescue_files(new))
        for doubt in translation.doubts:
            session.account.say(doubt)
        for note in translation.notes:
            session.account.say(note)
        _say_of(session, new)
        session.account.finish(
            f"{counted_rows(rows_of(plan))}: {in_words(new)}; {session.inputs.partitions_read}{rules.in_words()}"
            f"; read {to}/README.txt first"
        )


REASONS_SHOWN = 10


def _say_of(session: Session, plan: Row) -> None:
    """Report what was left out, by reason; it counts as wrong."""
    reasons: dict[str, list[Row]] = {}
    for row in plan["left_out"]:
        reasons.setdefault(row["reason"], []).append(row)
    session.account.is_wrong |= bool(reasons)
    for reason, rows in list(reasons.items())[:REASONS_SHOWN]:
        first = rows[0]
        session.account.say(
            f"left out: {counted(len(rows), 'offset')}, such as that of {to_json(first['group'])} on "
            f"{first['topic']}-{first['partition']}: {reason}"
        )
    if len(reasons) > REASONS_SHOWN:
        session.account.say(f"{len(reasons) - REASONS_SHOWN} more reasons are in left-out.jsonl")


def _plan_of_source(session: Session, profile: Profile, broker: BrokerOptions) -> Row:
    """Return the plan that a rescue of the source would have."""
    memory = Memory(profile, share_offsets=share_offsets_of(session, None))
    for part in Brokers(session, memory.profile, broker).load():
        memory.add(*part)
    return make_plan(
        memory,
        rescue_options(session, memory, as_broker=broker.as_broker),
        session.account.damages,
        notes=(*session.inputs.notes, *session.inputs.clusters.notes),
        corrupt=session.account.corrupt,
        unsupported=session.account.unsupported,
    )
