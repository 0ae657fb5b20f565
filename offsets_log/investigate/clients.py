"""Find who held the partition of each commit, as of the group metadata in force (`top` by clients and members)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from offsets_log.columnar.jit.kinds import LongRows, Longs
from offsets_log.columnar.ledger.columns import IS_COMMIT
from offsets_log.columnar.ledger.kernels import GROUP, PARTITION, TOPIC
from offsets_log.columnar.ledger.ledger import Batch, Keys
from offsets_log.columnar.ledger.numbers import NOBODY, Numbers, grown
from offsets_log.errors import ReplayError
from offsets_log.investigate.holders import NOBODY as NO_HOLDERS
from offsets_log.investigate.holders import Holder, Holders, TopicIds, holders_of
from offsets_log.investigate.writers import Writer, name_of, nobody
from offsets_log.log_format.batch import NO_PRODUCER_ID
from offsets_log.log_format.java_text import plain
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.groups import GROUP_METADATA, GroupFold
from offsets_log.replay.profile import MODERN
from offsets_log.replay.topic_names import topic_names_in

TEXTS = ("protocol_type", "protocol", "leader", "members")
"""All fields of a type 2 value that are not numbers."""


class Clients:
    """Whom commits are counted for, of the rows of one log in their order.

    A *version* of a group is who holds what in it. A commit's version is that of the last record before it that says
    so; its writer follows from the version, its key, its own topic id, the topic ids that have names by then, and
    whether it belongs to a transaction (``J-5``).

    Attributes:
        writers: by their numbers; the first is nobody.

    Args:
        per: ``client`` or ``member``.
        topic_ids: topic id → name, known from elsewhere.
    """

    def __init__(self, per: str, topic_ids: Mapping[bytes, str]) -> None:
        self._per = per
        self.writers = [nobody(per, None)]
        self._numbers = {self.writers[NOBODY]: NOBODY}
        self._topics = dict(topic_ids)
        self._ids = [TopicIds(self._topics)]
        self._texts: dict[int, str] = {}
        self._folds: dict[str, GroupFold] = {}
        self._last: dict[str, CoordinatorRecord] = {}
        self._versions: dict[tuple[object, ...], int] = {}
        self._held = [NO_HOLDERS]
        self._has_ids = np.zeros(1, np.int64)
        self._now = np.zeros(0, np.int64)
        self._circumstances = Numbers(0), Numbers(0)
        self._known = np.zeros(0, np.int64), np.zeros(0, np.int64)

    # --------------------------------------------------------------------------------- what records say

    def saw(self, record: CoordinatorRecord) -> int | None:
        """Note what a record says of groups and topic ids; return the group's version, None if it says nothing new."""
        new = {topic_id: name for topic_id, name in topic_names_in(record) if topic_id not in self._topics}
        if new:
            for topic_id, name in topic_names_in(record):
                self._topics.setdefault(topic_id, name)
            self._ids.append(TopicIds(self._topics))
        if record.is_offset_commit:
            return None
        group = plain(record.group)
        before, self._last[group] = self._last.get(group), record
        if before is not None and _differ_in_numbers(before, record):
            return None
        fold = self._folds.setdefault(group, GroupFold(group, MODERN))
        with suppress(ReplayError):  # as in a replay, the record is skipped
            fold.replay(record)
        return self._version(holders_of(fold.group))

    def _version(self, held: Holders) -> int:
        named = {(plain(topic), partition): holder for (topic, partition), holder in held.by_name.items()}
        if held.only is None and not named and not held.by_id:
            return 0
        only = None if held.only is None else name_of(held.only, self._per)
        version = self._versions.setdefault((self._facts(named), self._facts(held.by_id), only), len(self._held))
        if version == len(self._held):
            self._held.append(replace(held, by_name=named))
            self._has_ids = grown(self._has_ids, version + 1, 0)
            self._has_ids[version] = len(held.by_id) > 0
        return version

    def _facts(self, side: Mapping[Any, Holder]) -> tuple[object, ...]:
        return tuple((place, name_of(holder, self._per)) for place, holder in side.items())

    # -------------------------------------------------------------------------------------------- of rows

    def of(self, batch: Batch, keys: Keys) -> Longs:
        """Return the number of the writer of each row."""
        columns, named = batch.columns, keys.named()
        groups = named[:, GROUP]
        names_told, told, said = len(self._ids) - 1, list[int](), list[tuple[int, int, int]]()
        for row, record in batch.records:
            place, names_before = row - batch.first, len(self._ids)
            if (version := self.saw(record)) is not None:
                said.append((int(groups[columns.key[place]]), place, version))
            if len(self._ids) > names_before:
                told.append(place)
        writers = self._without_holder(columns.key, groups, keys)
        rows = np.flatnonzero(IS_COMMIT[columns.kind])
        versions = self._as_of(np.array(said, np.int64).reshape(-1, 3), groups[columns.key[rows]], rows)
        is_held = versions > 0
        rows, versions = rows[is_held], versions[is_held]
        has_ids = self._has_ids[versions]
        asked = np.column_stack([
            columns.key[rows],
            versions,
            has_ids * (names_told + np.searchsorted(np.array(told, np.int64), rows, side="right")),
            has_ids * columns.topic_id[rows],
            columns.producer_id[rows] == NO_PRODUCER_ID,
        ])  # fmt: skip
        found = self._looked_up(asked, named, keys)
        writers[rows] = np.where(found < 0, writers[rows], found)
        return writers

    def _without_holder(self, keys_of_rows: Longs, groups: Longs, keys: Keys) -> Longs:
        """Return the writers of rows that nobody sent, as far as is known: of members the group is."""
        writers = np.full(len(keys_of_rows), NOBODY, np.int64)
        if self._per == "member":
            has_key = keys_of_rows >= 0
            of_rows = groups[keys_of_rows[has_key]]
            distinct = np.unique(of_rows)
            unknown = nobody(self._per, None)[1:]
            numbers = [self._number((keys.name(group), *unknown)) for group in distinct.tolist()]
            writers[has_key] = np.array(numbers, np.int64)[np.searchsorted(distinct, of_rows)]
        return writers

    def _as_of(self, said: LongRows, groups: Longs, rows: Longs) -> Longs:
        """Return the versions of groups at rows.

        Args:
            said: (group, row, version), by row.
        """
        self._now = grown(self._now, 1 + max(int(groups.max(initial=-1)), int(said[:, 0].max(initial=-1))), 0)
        versions: Longs = self._now[groups]
        if len(said):
            self._now[said[:, 0]] = said[:, 2]  # of several the last
            said = said[np.argsort(said[:, 0], kind="stable")]
            places = np.searchsorted(said[:, 0] << 32 | said[:, 1], groups << 32 | rows) - 1
            is_later = (places >= 0) & (said[places, 0] == groups)
            versions[is_later] = said[places[is_later], 2]
        return versions

    def _looked_up(self, asked: LongRows, named: LongRows, keys: Keys) -> Longs:
        """Return the writers of keys in versions and other circumstances; −1 of nobody who is known."""
        of_key, versions, names_told, own, is_plain = asked.T
        outer, inner = self._circumstances
        codes = versions << 1 | is_plain
        if names_told.any() or own.any():
            codes = outer.of(inner.of(names_told << 32 | own) << 32 | codes) << 1 | 1 << 62
        known_codes, known_writers = (grown(each, int(of_key.max(initial=-1)) + 1, 0) for each in self._known)
        self._known = known_codes, known_writers
        found: Longs = known_writers[of_key]
        is_new = known_codes[of_key] != codes
        new = asked[is_new]
        answers: dict[tuple[int, ...], int] = {}
        answered = []
        for row, names in zip(map(tuple, new.tolist()), named[new[:, 0]].tolist(), strict=True):
            if row not in answers:
                answers[row] = self._look_up(row, names, keys)
            answered.append(answers[row])
        found[is_new] = answered
        known_codes[of_key], known_writers[of_key] = codes, found
        return found

    def _look_up(self, asked: tuple[int, ...], named: list[int], keys: Keys) -> int:
        _, version, names_told, own, is_plain = asked
        topic = self._text(named[TOPIC], keys)
        ids = self._ids[names_told].of(topic)
        ids = [keys.topic_id(own), *ids] if own else ids
        holder = self._held[version].of(topic, named[PARTITION], ids, is_plain=bool(is_plain))
        if holder is None:
            return -1
        group = [self._text(named[GROUP], keys)] if self._per == "member" else []
        return self._number((*group, *name_of(holder, self._per)))

    def _text(self, number: int, keys: Keys) -> str:
        found = self._texts.get(number)
        if found is None:
            found = self._texts[number] = keys.name(number)
        return found

    def _number(self, writer: Writer) -> int:
        number = self._numbers.setdefault(writer, len(self.writers))
        if number == len(self.writers):
            self.writers.append(writer)
        return number


def _differ_in_numbers(one: CoordinatorRecord, other: CoordinatorRecord) -> bool:
    """Whether a group's records say the same but for numbers such as the generation, as `RepeatedRecords` tells."""
    is_known = one.record_type == other.record_type == GROUP_METADATA and one.value is not None
    if not is_known or one.value is None or other.value is None:
        return False
    return all(one.value[name] is other.value[name] for name in TEXTS)
