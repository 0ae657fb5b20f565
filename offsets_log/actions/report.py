"""One page to look at: what there is to be shown of a copy."""

from __future__ import annotations

import time
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING

from offsets_log.actions.rescue import rescue_options
from offsets_log.coordinator_document import Memory
from offsets_log.disk.urls import without_secrets
from offsets_log.investigate.groups import groups_row_order, groups_rows
from offsets_log.investigate.writers import top_rows
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.report.document import ReportInput, make_document
from offsets_log.report.lags import lag_rows
from offsets_log.report.page import html_page
from offsets_log.report.samples import Samples
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.newest import newest_ms
from offsets_log.session.rules import Rules
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.investigate.writer_counts import Writers
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

SOURCES_SHOWN = 5


class Report:
    """A page about a session.

    Args:
        profile: whose rules to follow; None for what the files show.
        lag: whether ends of partitions are shown; None where the copy has the logs for it.
    """

    def __init__(self, session: Session, profile: str | None = None, *, lag: bool | None = None) -> None:
        self._session, self._lag = session, lag
        self._rules = Rules(session, profile)

    @cached_property
    def html(self) -> bytes:
        """The page, which needs no network and no other file. Raises OffsetsLogError."""
        return html_page(self.document)

    @cached_property
    def document(self) -> Row:
        """What the page shows. Raises OffsetsLogError."""
        session = self._session
        memory = Memory(self._rules.profile)
        samples = Samples(
            memory.profile, shows_group=session.inputs.shows_group, shows_topic=session.inputs.shows_topic
        )
        read = _read_in_bulk if session.engine.is_bulk_for("folds.overview.scan") else _read_once
        writers, groups = read(session, memory, samples)
        logs = lag_logs(session, self._lag)
        served = [value for part in memory.parts for value in part.state.iter_served()] if logs else []
        lags, lags_of_keys = lag_rows(logs, served) if logs else ([], {})
        stranded = list(session.inputs.iter_stranded(served)) if logs else []
        say_of_lag(session, logs)
        rows = top_rows(writers, "bytes")
        begins = [row["first_timestamp_ms"] for row in rows if row["first_timestamp_ms"] is not None]
        end_ms = newest_ms(session.inputs, {place: row["last_timestamp_ms"] for place, row in enumerate(rows)})
        found = ReportInput(
            memory=memory,
            groups=sorted(groups, key=groups_row_order),
            writers=[row for row in rows if row["group"] is None or session.inputs.shows_group(row["group"])],
            sampled=samples.finish(),
            asked=rescue_options(session, memory),
            damages=session.account.damages,
            corrupt=session.account.corrupt,
            unsupported=session.account.unsupported,
            begin_ms=min(begins, default=None),
            end_ms=None if end_ms == NO_TIMESTAMP else end_ms,
            identities=session.inputs.clusters.identities,
            lags=lags,
            lags_of_keys=lags_of_keys,
            stranded=stranded,
            notes=(*session.inputs.iter_unread(), *session.inputs.remarks, *session.inputs.clusters.notes),
        )
        sources = [*map(without_secrets, session.inputs.scope.paths[:SOURCES_SHOWN])]
        sources += ["…"] if len(session.inputs.scope.paths) > SOURCES_SHOWN else []
        return make_document(
            found,
            sources=sources,
            made_ms=int(time.time() * 1000),
            version=version("offsets-log"),
        )

    def finish(self, to: str) -> None:
        """Report what it shows.

        Args:
            to: the file that it was written to; ``-`` for none that can be opened.
        """
        about = self.document["about"]
        problems, transactions = (len(self.document["tables"][name]["rows"]) for name in ("problems", "transactions"))
        self._session.account.finish(
            f"{counted(about['groups'], 'group')}, {counted(about['offsets'], 'offset')}, "
            f"{self._session.inputs.partitions_read}, "
            f"{counted(problems, 'problem or note', 'problems or notes')}, "
            f"{counted(transactions, 'open transaction')}{self._rules.in_words(is_loaded=False)}"
            + ("" if to == "-" else f"; open {to} in a browser"),
            found=about["offsets" if self._session.inputs.scope.topic else "groups"],
        )


def _read_once(session: Session, memory: Memory, samples: Samples) -> tuple[Writers, list[Row]]:
    """Collect everything while the events of each partition pass by."""
    from offsets_log.investigate.writer_counts import Writers, count_writers
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
    return writers.finish(), rows


def _read_in_bulk(session: Session, memory: Memory, samples: Samples) -> tuple[Writers, list[Row]]:
    """Collect everything by kernels."""
    from offsets_log.investigate.writer_counts import WriterCounts, Writers

    writers, rows = Writers("group"), []
    for log, state, seen, overview in session.engine.overview_all(memory.profile):
        samples.add(log, overview)
        assert isinstance(overview.question, WriterCounts)
        writers.add(overview.question, log.offsets_partition)
        memory.add(log, state, seen)
        rows += groups_rows(state, log.offsets_partition, overview.last_activity(), 0)
    return writers.finish(), rows
