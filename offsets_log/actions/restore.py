"""Offsets of a plan, committed to a live cluster, or put back from the journal of earlier runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from offsets_log.cluster import admin
from offsets_log.cluster.properties import read_properties
from offsets_log.disk.journal import growing_file
from offsets_log.errors import ClusterLostError, InputError
from offsets_log.restore.apply import NO_TOPIC, restore
from offsets_log.restore.changes import DONE, LEFT, UNCHANGED, Change, Note
from offsets_log.restore.journal import Journal, JournalNote, read_journal
from offsets_log.restore.plan import decode_plan
from offsets_log.restore.policy import AHEAD, BEHIND, OUTSIDE, Policy
from offsets_log.restore.rename import parse_renames, renamed
from offsets_log.restore.undo import undo
from offsets_log.rows.asked_names import AskedNames, idle_options
from offsets_log.rows.tables import Row
from offsets_log.session.account import EXIT_DAMAGED
from offsets_log.words import counted

JOURNAL = "restore-journal.jsonl"


@dataclass(frozen=True, kw_only=True)
class RestoreAsked:
    """What is asked of a restore.

    Attributes:
        plan: the file of the plan; None to put back what the journal has.
        command_config: a file of properties for the connection.
        group, topic: globs or names; empty for all.
        rename_group, rename_topic: ``OLD=NEW``.
        leader_epochs, out_of_range: as of `Policy`.
        journal: the file that keeps previous offsets; None for `JOURNAL` beside the plan.
        undo: the journal of earlier runs, to put back what it has.
        execute: whether anything is committed; else it is only shown.
    """

    plan: str | None
    bootstrap_server: str
    command_config: str | None
    group: tuple[str, ...]
    topic: tuple[str, ...]
    rename_group: tuple[str, ...]
    rename_topic: tuple[str, ...]
    leader_epochs: str
    out_of_range: str
    only_behind: bool
    only_ahead: bool
    journal: str | None
    undo: str | None
    execute: bool

    @property
    def journal_path(self) -> Path:
        """The journal's path: beside the plan, unless an option says otherwise."""
        return Path(self.undo or self.journal or Path(self.plan or "").with_name(JOURNAL))


class Restore:
    """A run, its result, and its report.

    Args:
        say: hears of it.

    Attributes:
        total: how many offsets there are to process.
        lost: why the run stopped early, if it did.
        shows_group, shows_topic: the filters.
    """

    def __init__(self, asked: RestoreAsked, say: Callable[[str], None]) -> None:
        self.asked, self.say = asked, say
        self.changes: list[Change] = []
        self.total = 0
        self.lost = ""
        self._ask(set())
        self._begun = False

    def run(self) -> None:
        """Show or do the changes; what was done is in ``changes``, also when this stops early."""

        rows = self._rows()
        properties = read_properties(self.asked.command_config, self.say)

        with (
            closing(admin.Cluster(self.asked.bootstrap_server, properties)) as cluster,
            self._journal(cluster) as found,
        ):
            self._begun = True
            try:
                for change in self._work(cluster, rows, *found):
                    self.changes.append(change)
            except ClusterLostError as error:
                self.lost = str(error)

    def _rows(self) -> list[Row]:

        if self.asked.plan is None:
            return []
        rows = decode_plan(Path(self.asked.plan).read_bytes(), self.asked.plan)
        self._ask({row["group"] for row in rows})
        groups = parse_renames(self.asked.rename_group, {row["group"] for row in rows}, "--rename-group")
        topics = parse_renames(self.asked.rename_topic, {row["topic"] for row in rows}, "--rename-topic")
        rows = renamed([row for row in rows if self._shows(row["group"], row["topic"])], groups, topics)
        self.total = len(rows)
        return rows

    def _work(self, cluster: admin.Cluster, rows: list[Row], journal: Journal, note: Note | None) -> Iterator[Change]:

        if self.asked.undo is None:
            only = BEHIND if self.asked.only_behind else AHEAD if self.asked.only_ahead else None
            policy = Policy(self.asked.leader_epochs, self.asked.out_of_range, only)
            return restore(cluster, rows, policy, journal, note)
        self._ask({group for group, *_ in journal.entries})
        entries = {key: entry for key, entry in journal.entries.items() if self._shows(*key[:2])}
        self.total = len(entries)
        return undo(cluster, entries, note)

    def _ask(self, groups: Set[str]) -> None:
        """Make the filters for a plan's or a journal's groups."""
        self.shows_group = AskedNames(self.asked.group, groups.__contains__)
        self.shows_topic = AskedNames(self.asked.topic)

    def _shows(self, group: str, topic: str) -> bool:
        return self.shows_group(group) and self.shows_topic(topic)

    @property
    def _idle(self) -> list[str]:
        """The filters that fit nothing, as they may be given."""
        return [*idle_options("-g", self.shows_group), *idle_options("-t", self.shows_topic)]

    @contextmanager
    def _journal(self, cluster: admin.Cluster) -> Iterator[tuple[Journal, Note | None]]:
        """Return what earlier runs wrote, and open the journal if this run changes anything."""

        path, cluster_id = self.asked.journal_path, cluster.cluster_id()
        with growing_file(path) if self.asked.execute else nullcontext() as file:
            text = file.read() if file is not None else _text(path)
            journal = read_journal(text, str(path))
            if journal.has_begun and journal.cluster_id != cluster_id:
                raise InputError(
                    f"this journal is of cluster {journal.cluster_id}, and {self.asked.bootstrap_server} is of "
                    f"{cluster_id}: --journal FILE names another",
                    file=str(path),
                )
            if file is None:
                yield journal, None
                return
            undo, now_ms = self.asked.undo is not None, int(time.time() * 1000)
            yield journal, JournalNote(file.append, cluster_id=cluster_id, undo=undo, now_ms=now_ms)

    @property
    def exit_status(self) -> int:
        """3 if anything is not as the plan says, or is asked for that it does not have."""

        is_whole = len(self.changes) == self.total and not self.lost and not self._idle
        return EXIT_DAMAGED if not is_whole or any(change.reason is not None for change in self.changes) else 0

    def tell(self, ended_by: str) -> None:
        """Report the result in a line, after warnings; of a run that ended early `in_words` tells it."""
        for words in self._warnings():
            self.say(words)
        if not ended_by:
            hint = ": --execute does it" if self._changed() else ""
            self.say(self._counts() + ("" if self.asked.execute else f"; nothing was done{hint}"))

    def in_words(self, ended_by: str) -> str:
        """Return what ended a run early, and how far it came."""
        path, left = self.asked.journal_path, self.total - len(self.changes)
        after = (
            f"; {left} not, or not known to be; the same command goes on, --undo {path} puts back"
            if self.asked.execute and self._begun
            else "; nothing was done"
        )
        return f"{ended_by}: {self._counts()}{after}"

    def _changed(self) -> int:
        """Return how many offsets are, or would be, set."""
        return sum(change.reason is None and change.kind not in (DONE, UNCHANGED, LEFT) for change in self.changes)

    def _counts(self) -> str:
        """Return counts of the offsets that were processed."""
        verb = "committed" if self.asked.undo is None else "put back"
        refused = sum(change.reason is not None for change in self.changes)
        done = sum(change.reason is None and change.kind == DONE for change in self.changes)
        same = sum(change.reason is None and change.kind == UNCHANGED for change in self.changes)
        left = sum(change.reason is None and change.kind == LEFT for change in self.changes)
        return (
            f"{counted(self.total, 'offset')}: {self._changed()} {verb if self.asked.execute else f'would be {verb}'}, "
            f"{same} as they should be, {refused} refused"
            + (f", {left} left as asked" if left else "")
            + (f", {done} set by an earlier run and moved since, which are left alone" if done else "")
        )

    def _warnings(self) -> Iterator[str]:
        yield from self.shows_group.remarks("-g")
        yield from self.shows_topic.remarks("-t", "topic")
        if self._idle:
            yield f"no offset of the {'plan' if self.asked.undo is None else 'journal'} fits {' '.join(self._idle)}"
        if other := sum(change.same_topic is False for change in self.changes):
            yield (
                f"{counted(other, 'offset is', 'offsets are')} of topics with another topic id than the plan's, "
                "which were made again: the same offset may be another record there; offsets-log translate finds it"
            )
        if absent := {change.topic for change in self.changes if change.reason == NO_TOPIC}:
            yield (
                f"{counted(len(absent), 'topic is', 'topics are')} not on the cluster, or not shown to this user: make "
                f"{'it' if len(absent) == 1 else 'them'} first, with as many partitions as DETAILS.txt beside the plan "
                "lists"
            )
        outside = [change for change in self.changes if change.range == OUTSIDE]
        there = sum(change.kind == UNCHANGED for change in outside)
        refused = sum(change.kind != UNCHANGED and change.reason is not None for change in outside)
        moved = [change for change in outside if change.kind != UNCHANGED and change.reason is None]
        if there:
            yield f"{counted(there, 'offset is', 'offsets are')} outside the cluster's logs, and set there already"
        if moved:
            count = counted(len(moved), "offset is", "offsets are")
            yield f"{count} outside the cluster's logs: {self.asked.out_of_range}, as asked"
        if refused and self.asked.out_of_range == "refuse":
            count = counted(refused, "offset is", "offsets are")
            yield (
                f"{count} outside the cluster's logs, and refused: --out-of-range earliest or latest sets the log's "
                "start or end, keep commits them as they are; offsets-log translate finds the same records"
            )
        if self.asked.leader_epochs == "keep" and any(change.wanted and change.wanted.leader_epoch for change in moved):
            yield "leader epochs that the cluster never had keep a consumer waiting: --leader-epochs drop"


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
