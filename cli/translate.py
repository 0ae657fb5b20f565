"""``offsets-log translate``: committed offsets as files that set them again, right on another cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from cli.options import (
    NEW_DIRECTORY,
    PARTITIONS,
    PROFILE,
    Output,
    ReadOptions,
    broker_options,
    reading_options,
)
from cli.translate_options import TranslateOptions, check_usage, translate_options
from offsets_log.session.scope import BrokerOptions
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.replay.profile import Profile
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

EXAMPLES = (
    "Examples: offsets-log translate /copies/east --target /copies/west --to plan · "
    "offsets-log translate /copies/east --target /copies/west -g 'billing-*' --policy default:east --to plan · "
    "offsets-log translate /copies/east --bootstrap-server west:9092 --to plan"
)


@click.command("translate", epilog=EXAMPLES)
@reading_options
@PROFILE
@broker_options
@PARTITIONS
@translate_options
@NEW_DIRECTORY
def command(
    reading: ReadOptions,
    profile: str | None,
    broker: BrokerOptions,
    asked: TranslateOptions,
    to: str,
) -> None:
    """Translate committed offsets for another cluster, where records have other offsets, and write them as files.

    PATH is a copy of the source: __consumer_offsets and the logs of the topics. Each offset is found in the target by
    the records that both sides have (by their times and contents), by headers that say where a record was, or by a map
    of pairs. No record that a group has not read is skipped, as long as a mirror did not both change and reorder
    records: where the place is not certain, the answer moves back. The group then reads some records again;
    `reread_at_most` says how many at most. Offsets that cannot be translated are left out.

    With --bootstrap-server the other cluster is only asked for records by time. The group continues at the target's
    first record whose time is not before that of the oldest record it has not read; if it has read all, at that of the
    last record it has read. It is then not known how many records it reads again. All records from the offset on must
    be in PATH, the topic must have as many partitions there, and its records must have the times of their producers.

    The starts of share groups are translated in the same way, if PATH has __share_group_state.

    DIR gets the files of `offsets-log rescue`, for `offsets-log restore` and other tools. DIR/translation.jsonl has a
    row for each offset: how it was found (exact, by count, at least, by time, or with --allow-skip at most),
    reread_at_most, and skipped, which is 0 without --allow-skip.

    Exit status: 0 all was read and translated; 1 stopped by an error; 2 wrong usage; 3 something was damaged, or an
    offset could not be translated: DIR/left-out.jsonl says which, and why.
    """
    from cli.rescue import write_files
    from cli.session import open_session
    from cli.translate_run import Translation
    from offsets_log.log_format.partition_log import OUTCOMES
    from offsets_log.restore.directory import rescue_files
    from offsets_log.restore.plan import rows_of
    from offsets_log.restore.rows import counted_rows
    from offsets_log.session.rules import Rules
    from offsets_log.translation.names import check_apart
    from offsets_log.translation.share_starts import asked_of
    from offsets_log.translation.translated_plan import in_words, translated_plan

    check_usage(asked)
    with _as_usage():
        translation = Translation(asked)
    with (
        open_session(reading, Output(output=None, to=to), needs={"committed_offset", OUTCOMES}) as session,
        session.new_directory(to) as directory,
        translation,
    ):
        translation.connect(session.account.say)
        rules = Rules(session, profile)
        plan = _plan_of_source(session, rules.profile, broker)
        rows = list(asked_of(plan))
        if not rows and (reading.group or reading.topic):
            directory.rmdir()
            session.account.is_wrong = True
            session.account.finish(f"nothing to translate; {to} is not written", found=0)
            return
        with _as_usage():
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


@contextmanager
def _as_usage() -> Iterator[None]:
    """Raise what makes no sense of options as a UsageError."""
    from offsets_log.errors import InputError

    try:
        yield
    except InputError as error:
        raise click.UsageError(error.problem) from None


REASONS_SHOWN = 10


def _say_of(session: Session, plan: Row) -> None:
    """Report what was left out, by reason; it counts as wrong."""
    from offsets_log.rows.tables import to_json

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
    from cli.rescue import rescue_options
    from offsets_log.coordinator_document import Memory
    from offsets_log.restore.rescue import make_plan
    from offsets_log.session.brokers import Brokers
    from offsets_log.session.share_offsets import share_offsets_of

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
