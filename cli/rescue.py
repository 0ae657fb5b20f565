"""``offsets-log rescue``: committed offsets as files that set them again."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from cli.decide import check_usage, decide_options
from cli.judge import TargetOptions, add_judgement, target_options
from cli.lag import STRANDED
from cli.options import (
    NEW_DIRECTORY,
    PARTITIONS,
    PROFILE,
    Output,
    ReadOptions,
    broker_options,
    reading_options,
)
from offsets_log.session.decide import DecideOptions, begin_to_decide, say_of_decided
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.scope import BrokerOptions
from offsets_log.words import counted

if TYPE_CHECKING:
    from pathlib import Path

    from offsets_log.coordinator_document import Memory
    from offsets_log.restore.rescue import RescueOptions
    from offsets_log.restore.rows import Files
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

DOUBTS_SHOWN = 10
SCRIPT_SUFFIX = ".sh"
PIECES = 1 << 12
"""How many pieces of a text are written at a time."""


@click.command(
    "rescue",
    epilog="Examples: offsets-log rescue /var/lib/kafka/data --to rescued · "
    "offsets-log rescue backup.tar.gz -g 'billing-*' --until-time 2026-01-31T14:05:00Z --to before-the-accident",
)
@reading_options
@PROFILE
@broker_options
@PARTITIONS
@decide_options
@STRANDED
@target_options
@NEW_DIRECTORY
def command(
    reading: ReadOptions,
    profile: str | None,
    broker: BrokerOptions,
    decide: DecideOptions,
    lag: bool | None,
    target: TargetOptions,
    to: str,
) -> None:
    """Write committed offsets as files that kafka-consumer-groups, rpk, kaf, kafkactl, client libraries and Spark can
    read.

    DIR/plan.json has everything that is known, for `offsets-log restore`. DIR/README.txt says what is here, what is
    missing or doubtful, and which commands to run. Offsets that a tool would refuse or change are in
    DIR/left-out.jsonl. If parts of the log are missing or cannot be read, DIR/doubtful.jsonl has the offsets that a
    commit in such a part may have replaced, and standard error names their groups. From a data directory with
    __share_group_state, DIR/share-groups has the starts of share groups, and which records are delivered to them again.
    If there is no group at all, DIR is not written. The exit status is 3 then, and if nothing here matches one of -g
    and -t.

    With --target (a copy) or --bootstrap-server (live) the offsets are compared with the cluster that is to get them;
    nothing there is changed. This finds topics and partitions that it lacks, offsets outside its logs, topics created
    anew, groups with members or ahead already, and offsets that the user may not set, also for the starts of share
    groups. DIR/target.jsonl lists each such offset; if there are any, the exit status is 3.
    """
    from cli.session import open_session
    from offsets_log.coordinator_document import Memory
    from offsets_log.restore.directory import rescue_files
    from offsets_log.restore.plan import rows_of
    from offsets_log.restore.rescue import make_plan
    from offsets_log.restore.rows import counted_rows
    from offsets_log.session.brokers import Brokers
    from offsets_log.session.rules import Rules
    from offsets_log.session.share_offsets import share_offsets_of

    check_usage(reading, decide.decide, as_broker=broker.as_broker)
    with (
        open_session(reading, Output(output=None, to=to), needs={"committed_offset"}) as session,
        session.new_directory(to) as directory,
    ):
        session.account.tells_homes = True
        logs = lag_logs(session, lag)
        rules = Rules(session, profile)
        memory = Memory(rules.profile, begin_to_decide(session, decide), share_offsets_of(session, logs))
        for part in Brokers(session, memory.profile, broker).load():
            memory.add(*part)
        offsets = (value for part in memory.parts for value in part.state.iter_served())
        stranded = list(session.inputs.iter_stranded(offsets)) if logs else []
        say_of_lag(session, logs)
        unread = [*session.inputs.iter_unread()]
        doubt = [] if (found := rules.doubt()) is None else [found]
        notes = [*doubt, *session.inputs.iter_idle_bounds(), *session.inputs.remarks, *session.inputs.clusters.notes]
        plan = make_plan(
            memory,
            rescue_options(session, memory, as_broker=broker.as_broker),
            session.account.damages,
            unread=unread,
            notes=notes,
            corrupt=session.account.corrupt,
            unsupported=session.account.unsupported,
            stranded=stranded,
        )
        has_found = holds_anything(plan)
        session.account.is_wrong |= not has_found or bool(session.inputs.idle_filters)
        if has_found:
            judged = add_judgement(session, plan, target, memory.profile)
            session.account.is_wrong |= bool(judged)
            write_files(directory, rescue_files(plan, judged))
        else:
            directory.rmdir()
        said = {*unread, *notes, *(missing.in_words() for missing in session.account.lost)}
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
    from offsets_log.restore.rescue import RescueOptions

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


def write_files(directory: Path, files: Files) -> None:
    """Write files; it is an error if one would replace another, also where names differ in case only."""
    folders = {directory}
    for name, pieces in files:
        path = directory / name
        if path.parent not in folders:
            path.parent.mkdir(parents=True, exist_ok=True)
            folders.add(path.parent)
        with path.open("xb") as file:
            texts = iter(pieces)
            while some := list(islice(texts, PIECES)):
                file.write("".join(some).encode())
        if path.suffix == SCRIPT_SUFFIX:
            path.chmod(0o755)
