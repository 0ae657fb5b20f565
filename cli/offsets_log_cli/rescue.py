"""``offsets-log rescue``: committed offsets as files that set them again."""

from __future__ import annotations

import click

from offsets_log.actions.rescue_asked import TargetAsked
from offsets_log.session.decide import DecideOptions
from offsets_log.session.scope import BrokerOptions
from offsets_log_cli.decide import check_usage, decide_options
from offsets_log_cli.help_page import Command
from offsets_log_cli.judge import target_options
from offsets_log_cli.lag import STRANDED
from offsets_log_cli.options import (
    NEW_DIRECTORY,
    PARTITIONS,
    Output,
    ReadOptions,
    broker_options,
    reading_options,
    release_options,
)


@click.command(
    "rescue",
    cls=Command,
    epilog="Examples: offsets-log rescue /var/lib/kafka/data --to rescued · "
    "offsets-log rescue backup.tar.gz -g 'billing-*' --until-time 2026-01-31T14:05:00Z --to before-the-accident",
)
@reading_options
@release_options
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
    target: TargetAsked,
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
    again, groups with members or ahead already, and offsets that the user may not set, also for the starts of share
    groups. DIR/target.jsonl lists each such offset; if there are any, the exit status is 3.
    """
    from offsets_log.actions.rescue import rescue
    from offsets_log.actions.rescue_asked import RescueAsked
    from offsets_log_cli.session import open_session

    check_usage(reading, decide.decide, as_broker=broker.as_broker)
    asked = RescueAsked(profile=profile, broker=broker, decide=decide, lag=lag, target=target)
    with open_session(reading, Output(output=None, to=to), needs={"committed_offset"}) as session:
        rescue(session, asked, to)
