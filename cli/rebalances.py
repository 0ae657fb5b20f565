"""``offsets-log rebalances``: who joined, who left, what was assigned, and whether it was right."""

from __future__ import annotations

import re
from typing import Any

import click

from cli.follow_options import follow_options, is_followed
from cli.options import TOPIC_IDS, Output, ReadOptions, output_option, reading_options
from offsets_log.actions.follow_asked import FollowAsked
from offsets_log.words import UNITS_MS, counted


class Storm(click.ParamType):  # type: ignore[type-arg]
    """``5/5m`` → (5, ms)."""

    name = "N/DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the value; fail for anything else."""
        match = re.fullmatch(r"(\d{1,9})/(\d{1,12})(ms|s|m|h|d|w)", str(value).strip())
        if match is None or int(match[1]) < 2:
            self.fail(f"{value!r} is not a number of generations in a time, such as 5/5m", param, ctx)
        return int(match[1]), int(match[2]) * UNITS_MS[match[3]]


@click.command(
    "rebalances",
    epilog="Examples: offsets-log rebalances /var/lib/kafka/data -g billing · "
    "offsets-log rebalances backup.tar.gz --verify --topic-partitions invoices=12",
)
@reading_options
@TOPIC_IDS
@click.option(
    "--storm",
    type=Storm(),
    default="5/5m",
    show_default=True,
    help="N generations of a group within DURATION count as a storm; a member that returns twice within it flaps.",
)
@click.option(
    "--verify",
    "verifies",
    is_flag=True,
    help="Compute each assignment again and report whether it equals the recorded one.",
)
@click.option(
    "--topic-partitions",
    metavar="TOPIC=N,...",
    multiple=True,
    help="How many partitions topics have, for --verify; by default what assignments in the log show. Repeatable.",
)
@follow_options("rebalance-storm")
@output_option("table", "jsonl", "json", "csv", "parquet")
def command(
    reading: ReadOptions,
    output: Output,
    topic_ids: str | None,
    storm: tuple[int, int],
    verifies: bool,
    topic_partitions: tuple[str, ...],
    follow: FollowAsked,
) -> None:
    """Show the timeline of every group: its generations, members that join and leave, partitions that move.

    One row for each generation, or for each group epoch of the newer protocols. A generation that members joined but
    never synced is not in a log: its number is in "skipped" of the next one. An assignment that differs under --verify
    is no damage: the exit status is 0. Offset commits are not read, and -t has no effect.

    --follow prints a generation when it comes, and again when more is known about it: its duration, that it is part of
    a storm.
    """
    if is_followed(reading, output, follow, {"--verify": verifies, "--topic-partitions": topic_partitions}):
        from cli.follow_runs import follow_rebalances

        follow_rebalances(reading, output, follow, storm, topic_ids)
        return
    from collections import Counter

    from cli.output import chosen_format
    from cli.rebalance_output import write_timelines
    from cli.session import open_session
    from cli.terminal import as_usage
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.rebalance.named import parsed_topics
    from offsets_log.rebalance.storms import Limits, mark_storms
    from offsets_log.rebalance.timeline import Timelines
    from offsets_log.rebalance.verify import verify_all
    from offsets_log.replay.groups import GROUP_METADATA
    from offsets_log.rows.asked_names import AskedNames
    from offsets_log.session.inputs import read_topic_ids

    with as_usage():
        counts = parsed_topics(topic_partitions)
    with open_session(reading, output) as session:
        if reading.topic:
            session.account.say("-t has no effect: a rebalance is of the whole group")
        shows_group = session.inputs.shows_group if not verifies else AskedNames(())
        timelines = Timelines(shows_group)
        selection = Selection(shows_group, record_types=frozenset({GROUP_METADATA}), with_names=True, is_bare=True)
        for log in session.inputs.logs:
            timelines.read(session.engine.selected(log, selection, timelines.wants), session.account.on_damage)
        timelines.name_topics(read_topic_ids(topic_ids), session.inputs.topic_ids)
        for entries in timelines.generations.values():
            mark_storms(entries, Limits(storm[0], window_ms=storm[1]))
        entries = [entry for entry in timelines if session.inputs.shows_group(entry.group_id)]
        found = {id(entry): each for entry, each in verify_all(timelines, counts)} if verifies else None
        write_timelines(session, output, entries, found, chosen_format(output))
        if found is not None:
            verdicts = Counter(str(found[id(entry)].verdict) for entry in entries if id(entry) in found)
            session.account.say(
                "assignments: " + (", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()) or "none")
            )
        session.account.finish(
            f"{counted(len(entries), 'generation')} of {counted(len({entry.group_id for entry in entries}), 'group')}, "
            f"{session.inputs.partitions_read}; "
            f"{sum(entry.is_storm for entry in entries)} in storms, "
            f"{sum(bool(entry.flapping) for entry in entries)} with flapping members",
            found=len(entries),
        )
