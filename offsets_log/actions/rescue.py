"""Committed offsets as files that set them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offsets_log.actions.judge import add_judgement
from offsets_log.actions.plan_files import DOUBTS_SHOWN, write_files
from offsets_log.coordinator_document import Memory
from offsets_log.replay.partition_count import DOUBTED
from offsets_log.restore.directory import rescue_files
from offsets_log.restore.doubts import of_strays
from offsets_log.restore.plan import rows_of
from offsets_log.restore.rescue import RescueOptions, make_plan
from offsets_log.restore.rows import counted_rows
from offsets_log.session.brokers import Brokers
from offsets_log.session.decide import begin_to_decide, say_of_decided
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.rules import Rules
from offsets_log.session.share_offsets import share_offsets_of
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.actions.rescue_asked import RescueAsked
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session


def rescue(session: Session, asked: RescueAsked, to: str) -> None:
    """Write the offsets into a new directory, in the forms that tools read; without any group it is not written.

    Raises:
        OffsetsLogError: something cannot be read or written, or the target does not answer.
    """
    with session.new_directory(to) as directory:
        session.account.tells_homes = True
        logs = lag_logs(session, asked.lag)
        rules = Rules(session, asked.profile)
        memory = Memory(rules.profile, begin_to_decide(session, asked.decide), share_offsets_of(session, logs))
        for part in Brokers(session, memory.profile, asked.broker).load():
            memory.add(*part)
        offsets = (value for part in memory.parts for value in part.state.iter_served())
        stranded = list(session.inputs.iter_stranded(offsets)) if logs else []
        say_of_lag(session, logs)
        unread = [*session.inputs.iter_unread()]
        doubt = [] if (found := rules.doubt()) is None else [found]
        notes = [*doubt, *session.inputs.iter_idle_bounds(), *session.inputs.remarks, *session.inputs.clusters.notes]
        options = rescue_options(session, memory, as_broker=asked.broker.as_broker)
        plan = make_plan(
            memory,
            options,
            session.account.damages,
            unread=unread,
            notes=notes,
            corrupt=session.account.corrupt,
            unsupported=session.account.unsupported,
            stranded=stranded,
        )
        has_found = holds_anything(plan)
        is_doubted = options.partitions.source in DOUBTED or any(of_strays(plan))
        session.account.is_wrong |= not has_found or bool(session.inputs.idle_filters) or is_doubted
        if has_found:
            judged = add_judgement(session, plan, asked.target, memory.profile)
            session.account.is_wrong |= bool(judged)
            write_files(directory, rescue_files(plan, judged))
        else:
            directory.rmdir()
        said = {*unread, *notes, *(missing.in_words() for missing in session.account.lost)}
        said.update(found.in_words() for found in session.account.below_start)
        doubts = [doubt for doubt in plan["doubts"] if doubt not in said]
        for doubt in doubts[:DOUBTS_SHOWN]:
            session.account.say(doubt)
        if len(doubts) > DOUBTS_SHOWN:
            session.account.say(
                f"{counted(len(doubts) - DOUBTS_SHOWN, 'more doubt is', 'more doubts are')} in README.txt"
            )
        say_of_decided(session)
        rows = rows_of(plan)
        groups = len({row["group"] for row in rows})
        session.account.finish(
            f"{counted_rows(rows)} of {counted(groups, 'group')}, {session.inputs.partitions_read}{rules.in_words()}; "
            + (f"read {to}/README.txt first" if has_found else f"{to} is not written"),
            found=int(has_found),
        )


def holds_anything(plan: Row) -> bool:
    """Whether a plan is of any group; where topics are chosen, of any offset."""
    names = ("offsets", "pending", "orphans", "duplicates", "share_offsets")
    return any(map(plan.get, names if plan["filters"]["topics"] else (*names, "groups")))


def rescue_options(session: Session, memory: Memory, *, as_broker: bool = False) -> RescueOptions:
    """Return what a run was asked to take of its inputs."""
    reading = session.inputs.scope
    return RescueOptions(
        as_broker=as_broker,
        until_time_ms=reading.until_time,
        until_offsets=reading.until_offset,
        groups=reading.group,
        topics=reading.topic,
        offsets_partitions=reading.offsets_partition,
        partitions=session.inputs.count_of((part.log.offsets_partition, part.state) for part in memory.parts),
        absent=session.inputs.absent,
    )
