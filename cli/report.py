"""``offsets-log report``: one page to look at."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING

import click

from cli.lag import LAG
from cli.options import PARTITIONS, PROFILE, Output, ReadOptions, reading_options
from offsets_log.disk.urls import without_secrets
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.coordinator_document import Memory
    from offsets_log.investigate.writers import Writers
    from offsets_log.report.samples import Samples
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

SOURCES_SHOWN = 5


@click.command(
    "report",
    epilog="Examples: offsets-log report /var/lib/kafka/data --to report.html · "
    "offsets-log report backup.tar.gz -g 'billing-*' --until-time 2026-12-01T14:05:00Z --to billing.html",
)
@reading_options
@PROFILE
@PARTITIONS
@LAG
@click.option(
    "--to",
    metavar="FILE",
    type=click.Path(),
    required=True,
    help="The HTML file to write; it appears whole or not at all.",
)
def command(reading: ReadOptions, profile: str | None, lag: bool | None, to: str) -> None:
    """Write one HTML page: offsets over time, rebalances, top writers, open transactions, problems.

    The file needs no network and no other file: any browser opens it, and it can be sent to others. Names from the log
    are shown as text, whatever they contain.

    Curves of offsets and generations are samples, finer for the groups with the most commits; the last point of each
    curve is what a broker serves after a load. `history` has every commit of a group. Bytes and commits of a group
    count all its topics, also with -t.
    """
    from cli.output import destination
    from cli.session import open_session
    from offsets_log.actions.rescue import rescue_options
    from offsets_log.coordinator_document import Memory
    from offsets_log.investigate.groups import groups_row_order
    from offsets_log.investigate.writers import top_rows
    from offsets_log.report.document import ReportInput, make_document
    from offsets_log.report.lags import lag_rows
    from offsets_log.report.page import html_page
    from offsets_log.report.samples import Samples
    from offsets_log.session.rules import Rules

    output = Output(output=None, to=to)
    with open_session(reading, output) as session:
        rules = Rules(session, profile)
        memory = Memory(rules.profile)
        samples = Samples(
            memory.profile, shows_group=session.inputs.shows_group, shows_topic=session.inputs.shows_topic
        )
        read = _read_in_bulk if session.engine.is_bulk_for("folds.overview.scan") else _read_once
        writers, groups = read(session, memory, samples)
        logs = lag_logs(session, lag)
        served = [value for part in memory.parts for value in part.state.iter_served()] if logs else []
        lags = lag_rows(logs, served) if logs else []
        stranded = list(session.inputs.iter_stranded(served)) if logs else []
        say_of_lag(session, logs)
        found = ReportInput(
            memory=memory,
            groups=sorted(groups, key=groups_row_order),
            writers=[
                row
                for row in top_rows(writers, "bytes")
                if row["group"] is None or session.inputs.shows_group(row["group"])
            ],
            sampled=samples.finish(),
            asked=rescue_options(session, memory),
            damages=session.account.damages,
            corrupt=session.account.corrupt,
            unsupported=session.account.unsupported,
            lags=lags,
            stranded=stranded,
            notes=(*session.inputs.iter_unread(), *session.inputs.remarks, *session.inputs.clusters.notes),
        )
        sources = [*map(without_secrets, reading.paths[:SOURCES_SHOWN])]
        sources += ["…"] if len(reading.paths) > SOURCES_SHOWN else []
        document = make_document(
            found,
            sources=sources,
            made_ms=int(time.time() * 1000),
            version=version("offsets-log"),
        )
        with destination(output, session.inputs.files) as stream:
            stream.write(html_page(document))
        about = document["about"]
        problems, transactions = (len(document["tables"][name]["rows"]) for name in ("problems", "transactions"))
        session.account.finish(
            f"{counted(about['groups'], 'group')}, {counted(about['offsets'], 'offset')}, "
            f"{session.inputs.partitions_read}, "
            f"{counted(problems, 'problem or note', 'problems or notes')}, "
            f"{counted(transactions, 'open transaction')}{rules.in_words(is_loaded=False)}"
            + ("" if to == "-" else f"; open {to} in a browser"),
            found=about["offsets" if reading.topic else "groups"],
        )


def _read_once(session: Session, memory: Memory, samples: Samples) -> tuple[Writers, list[Row]]:
    """Collect everything while the events of each partition pass by."""
    from offsets_log.investigate.groups import groups_rows
    from offsets_log.investigate.writers import Writers, count_writers
    from offsets_log.replay.coordinator_state import finish
    from offsets_log.replay.fold import replay_into
    from offsets_log.rows.activity import Activity
    from offsets_log.rows.survey import Survey

    writers, rows = Writers("group"), []
    for log in session.inputs.logs:
        seen, activity, sampled = Survey.of(log), Activity(), samples.state()
        events = activity.watch(seen.watch(session.engine.events(log)))
        events = sampled.watch(count_writers(events, writers, log.offsets_partition, {}))
        replay_into(sampled, events, on_damage=session.account.on_damage)
        state = finish(sampled).showing(session.inputs.shows_group, session.inputs.shows_topic)
        samples.add(log, sampled)
        memory.add(log, state, seen)
        rows += groups_rows(state, log.offsets_partition, activity.last_ms, 0)
    writers.finish()
    return writers, rows


def _read_in_bulk(session: Session, memory: Memory, samples: Samples) -> tuple[Writers, list[Row]]:
    """Collect everything by kernels."""
    from offsets_log.investigate.bulk_writers import BulkWriters
    from offsets_log.investigate.groups import groups_rows

    writers, rows = BulkWriters("group"), []
    for log, state, seen, overview in session.engine.overview_all(memory.profile):
        samples.add(log, overview)
        writers.add(overview, log.offsets_partition)
        memory.add(log, state, seen)
        rows += groups_rows(state, log.offsets_partition, overview.last_activity(), 0)
    return writers.finish(), rows
