"""Choose batches by the keys of their records, in a kernel: for questions about few records of a log.

Every batch is checked as in a replay (`scan.take`), and one that is not plain is left to `log_format` in the same way.
A plain batch has to be read only if it holds a wanted record. Groups and topics are wanted by their names, offset
commits by their raw keys, which count as names too: Python decides this once for each name.

names    one row for each name that was met, of whatever: the numbers are those of `interner.intern_group`
chosen   one row for each batch chosen, with the run of batches before it that were passed by
told     one row for each wanted record of these, where these are asked for, with the run of records before it that
         were passed by; their keys and values are in ``copied``
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.choose.name_lists import LIST_KINDS, LISTS, TOPICS_WITH_PARTITIONS
from offsets_log.columnar.folds import newer
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.overflow import producer_at
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.interner import GROUP_NOTE, TOPIC_NOTE, has_room, intern_group, intern_producer, is_at
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be64, uvarint, walk

# Columns of ``names``.
AS_GROUP, AS_TOPIC, AS_KEY = range(3)  # a verdict; AS_KEY where the name is the raw key of an offset commit
TOPIC_OF_ID = 3  # where the name is a topic id: what was last said of it, see `_said`; 0 is nothing
NAME_SIZE = 4
UNDECIDED, UNWANTED, WANTED, BY_KEY = range(4)
"""Verdicts on a name; of a group that is wanted BY_KEY only some offset commits are."""
FOLLOWED, OPEN, MARKED = range(3)
"""What is known of a producer, instead of its head's offset: all its markers are wanted, the next one, or no more."""

# What is asked, and how far it is, in ``counts``.
(
    TYPES,  # a bit for each record type that is wanted
    BY_TOPIC,  # whether topics are asked for, too
    WITH_NAMES,  # whether a record is wanted that says of a topic id what was not said of it before
    WITH_MARKERS,  # whether markers are wanted of producers that wrote what was chosen
    WITH_BATCHES,  # whether every batch has a row
    CHOSEN,  # rows
    CHOSEN_AT,  # the batch that was last found to hold a wanted record
    FIRST,  # the first record passed by, NOTHING without one
    NEXT,  # the offset behind the last one
    HAS_HOLES,  # whether offsets between these are left out
    IS_BARE,  # whether the records of what is chosen are told, but those of control batches
    TOLD,  # records told
    USED,  # bytes of their copy
    FIRST_MARKERS,  # whether each producer's first marker is wanted, too
    NAMES_TOLD,  # records of newer kinds that name topics: behind each one commits may say something new again
    LOOKED_AT,  # the batch whose records were last looked at
    GROUP_BEFORE,  # the group of the record before, NOTHING without one
    COUNTS,
) = range(18)

# Columns of both: a run of records that were passed by, as in ``counts``.
RUN_FIRST, RUN_NEXT, RUN_HAS_HOLES = range(3)

# More columns of ``chosen``; AT is NOTHING where only a run is told. The run is behind the last record that is told.
BATCH_AT, BATCH_SIZE, IS_CHOSEN, TOLD_END, CHOSEN_SIZE = range(3, 8)

# More columns of ``told``: a record of what is chosen, and where its key and value are copied to.
TOLD_OFFSET, TOLD_TIME, TOLD_KEY, TOLD_KEY_SIZE, TOLD_VALUE_SIZE, TOLD_SIZE = range(3, 9)


TOPIC_ID_SIZE = 16
MARK_SIZE = 3
"""Bytes before a topic id that is a value's only tagged field: number of fields, tag, size."""


@inlined
def _number_of(arrays: a.Arrays, names: Any, data: Any, start: Any, size: Any) -> Any:
    """Return the number of a name, new or known; NEEDS_ROOM."""
    if not has_room(arrays, size) or arrays.scan_state.group_count >= len(names):
        return np.int64(oc.NEEDS_ROOM)
    return intern_group(arrays, data, start, size)


@inlined
def _verdict(
    counts: Any, arrays: a.Arrays, names: Any, data: Any, staged: Table[a.Staged], i: Any, group_at: Any, topic_at: Any
) -> Any:
    """Return the verdict on a staged record's key; NEEDS_ROOM."""
    number = be16(data, staged[i].key_at)
    is_commit = number < a.COMMIT_TYPES
    if counts[TYPES] >> number & 1 == 0 or (counts[BY_TOPIC] and not is_commit):
        return np.int64(UNWANTED)
    group, size = counts[GROUP_BEFORE], be16(data, group_at - 2)
    is_again = group >= 0 and is_at(arrays.arena, arrays.groups[group].name_at, data, group_at, size)
    if not is_again:  # mostly it is
        group = _number_of(arrays, names, data, group_at, size)
        if group < 0:
            return group
        counts[GROUP_BEFORE] = group
    verdict = names[group, AS_GROUP]
    if verdict == BY_KEY:
        if not is_commit:
            if staged[i].kind == a.TOMBSTONE:
                names[group, AS_GROUP] = WANTED  # the next commit of any key may create it again
            return np.int64(WANTED)
        key = _number_of(arrays, names, data, staged[i].key_at, staged[i].key_size)
        if key < 0:
            return key
        verdict = names[key, AS_KEY]
    if verdict == UNWANTED or not counts[BY_TOPIC]:
        return verdict
    topic = _number_of(arrays, names, data, topic_at, be16(data, topic_at - 2))
    if topic < 0:
        return topic
    return verdict if names[topic, AS_TOPIC] == WANTED else names[topic, AS_TOPIC]


@inlined
def _said(counts: Any, topic: Any) -> Any:
    """Return what a commit says of a topic id: the topic's number, and the newer records before that named topics."""
    return counts[NAMES_TOLD] << 32 | topic + 1


@part
def _names_anew(counts: Any, arrays: a.Arrays, names: Any, data: Any, id_at: Any, end: Any, topic_at: Any) -> Any:
    """Return WANTED if a commit's value gives a topic id another name than before, else UNWANTED; NEEDS_ROOM.

    A value that is not written as Kafka writes it is always WANTED: readers that search for the bytes of the id may
    miss it.
    """
    if be64(data, id_at) == 0 and be64(data, id_at + 8) == 0:
        return np.int64(UNWANTED)
    topic_id = _number_of(arrays, names, data, id_at, np.int64(TOPIC_ID_SIZE))
    if topic_id < 0:
        return topic_id
    topic = _number_of(arrays, names, data, topic_at, be16(data, topic_at - 2))
    if topic < 0:
        return topic
    mark = id_at - MARK_SIZE
    is_usual = id_at + TOPIC_ID_SIZE == end and data[U(mark)] == 1 and data[U(mark + 1)] == 0
    if not is_usual or data[U(mark + 2)] != TOPIC_ID_SIZE:
        names[topic_id, TOPIC_OF_ID] = 0
        return np.int64(WANTED)
    is_known = names[topic_id, TOPIC_OF_ID] == _said(counts, topic)
    names[topic_id, TOPIC_OF_ID] = _said(counts, topic)
    return np.int64(UNWANTED if is_known else WANTED)


@part
def _lists_name_anew(counts: Any, arrays: a.Arrays, names: Any, data: Any, at: Any, end: Any, lists: Any) -> Any:
    """Do as `_names_anew` for the lists of a newer kind's value, which a program has read; choose what is new at once.

    Args:
        lists: the kinds of lists, see `LISTS`.
    """
    verdict = np.int64(UNWANTED)
    while lists > 0:
        count, at = uvarint(data, at, end)
        for _ in range(count - 1):
            size, text_at = uvarint(data, at + TOPIC_ID_SIZE, end)
            topic_id = _number_of(arrays, names, data, at, np.int64(TOPIC_ID_SIZE))
            topic = _number_of(arrays, names, data, text_at, size - 1)
            if topic_id < 0 or topic < 0:
                return np.int64(oc.NEEDS_ROOM)
            if names[topic_id, TOPIC_OF_ID] != _said(counts, topic):
                names[topic_id, TOPIC_OF_ID] = _said(counts, topic)
                counts[CHOSEN_AT] = arrays.scan_state.at
                verdict = np.int64(WANTED)
            at = text_at + size - 1
            if lists % LIST_KINDS == TOPICS_WITH_PARTITIONS:
                partitions, at = uvarint(data, at, end)
                at += 4 * (partitions - 1)
            tags, at = uvarint(data, at, end)
            for _ in range(tags):
                _, at = uvarint(data, at, end)
                size, at = uvarint(data, at, end)
                at += size
        lists //= LIST_KINDS
    return verdict


@inlined
def _look_at_record(counts: Any, arrays: a.Arrays, names: Any, data: Any, staged: Table[a.Staged], i: Any) -> Any:
    """Return the verdict on a staged record; NEEDS_ROOM, NOT_PLAIN."""
    scan_state = arrays.scan_state
    key = staged[i].key_at
    number = be16(data, key)
    if walk(scan_state, scan_state.key_programs[number], data, key + 2, key + staged[i].key_size) < 0:
        return np.int64(oc.NOT_PLAIN)
    group_at, topic_at = scan_state.notes[GROUP_NOTE] + 2, scan_state.notes[TOPIC_NOTE] + 2
    verdict = _verdict(counts, arrays, names, data, staged, i, group_at, topic_at)
    if verdict < 0 or not counts[WITH_NAMES]:
        return verdict
    if number >= a.KEY_TYPES and newer.TYPES[number, newer.NAMES] and staged[i].kind == a.VALUE:
        if LISTS[U(number)] == 0:
            counts[NAMES_TOLD] += 1
            return np.int64(WANTED)
        at, end = staged[i].value_at + 2, staged[i].value_at + staged[i].value_size
        named = _lists_name_anew(counts, arrays, names, data, at, end, LISTS[U(number)])
        return named if named != UNWANTED else verdict
    id_at = staged[i].topic_id_at
    if id_at < 0:
        return verdict
    end = staged[i].value_at + staged[i].value_size
    named = _names_anew(counts, arrays, names, data, id_at, end, topic_at)
    return named if named != UNWANTED else verdict


@part
def _look(counts: Any, arrays: a.Arrays, names: Any, records: a.Records, at: Any) -> Any:
    """Set ``counts[CHOSEN_AT]`` if the staged batch is chosen; return why this cannot be decided yet.

    Records that are not wanted become PASSED; none does where the batch was looked at before, because what was new then
    is known now.
    """
    staged = records.staged
    if bt.attributes_of(records.data, at) & bt.CONTROL_MASK:
        producer = producer_at(arrays, staged[0].producer)
        if counts[WITH_MARKERS] and producer.head_offset == FOLLOWED:
            counts[CHOSEN_AT] = at
        elif producer.head_offset == OPEN or (counts[FIRST_MARKERS] and producer.head_offset == a.NOTHING):
            counts[CHOSEN_AT] = at
            producer.head_offset = MARKED
        return np.int64(oc.FINISHED)
    outcome = np.int64(oc.FINISHED)
    is_again = counts[LOOKED_AT] == at
    counts[LOOKED_AT] = at
    for number in range(arrays.scan_state.staged):
        verdict = _look_at_record(counts, arrays, names, records.source, staged, U(number))
        if verdict < 0:
            return verdict
        if verdict == WANTED:
            counts[CHOSEN_AT] = at
        elif verdict == UNDECIDED:
            outcome = np.int64(oc.NEEDS_VERDICT)
        elif not is_again:
            staged[U(number)].kind = a.PASSED
    producer_id = bt.producer_of(records.data, at)
    if counts[CHOSEN_AT] == at and counts[WITH_MARKERS] and not _want(arrays, producer_id, OPEN):
        return np.int64(oc.NEEDS_ROOM)
    return outcome


@inlined
def _want(arrays: a.Arrays, producer_id: Any, markers: Any) -> Any:
    """Want a producer's markers from here on, FOLLOWED, or the next one, OPEN; return False without room."""
    number = intern_producer(arrays, producer_id)
    if number < 0:
        return False
    producer = producer_at(arrays, number)
    if producer.head_offset != FOLLOWED:
        producer.head_offset = markers
    return True


@kernel
def follow(arrays: a.Arrays, producer_id: Number) -> Any:
    """Want all markers of a producer from here on; return False without room."""
    return _want(arrays, producer_id, FOLLOWED)


@inlined
def _pass(counts: Any, offset: Any) -> None:
    """Add a record to the run of those passed by."""
    if counts[FIRST] == a.NOTHING:
        counts[FIRST] = offset
        counts[HAS_HOLES] = 0
    elif offset != counts[NEXT]:
        counts[HAS_HOLES] = 1
    counts[NEXT] = offset + 1


@inlined
def _end_run(counts: Any, table: Any, row: Any) -> None:
    """Note the run in a row of ``chosen`` or ``told``, and begin another."""
    table[row, RUN_FIRST] = counts[FIRST]
    table[row, RUN_NEXT] = counts[NEXT]
    table[row, RUN_HAS_HOLES] = counts[HAS_HOLES]
    counts[FIRST] = a.NOTHING


@inlined
def _add(counts: Any, chosen: Any, at: Any, size: Any, is_chosen: Any) -> None:
    """Add a row, and end the run before it."""
    row = U(counts[CHOSEN])
    chosen[row, BATCH_AT] = at
    chosen[row, BATCH_SIZE] = size
    chosen[row, IS_CHOSEN] = is_chosen
    chosen[row, TOLD_END] = counts[TOLD]
    counts[CHOSEN] += 1
    _end_run(counts, chosen, row)


@part
def _tell(counts: Any, scan_state: a.ScanState, records: a.Records, at: Any, told: Any, copied: Any) -> Any:
    """Copy the staged batch's records that are not PASSED; return False without room for all of them."""
    staged = records.staged
    size = np.int64(0)
    for number in range(scan_state.staged):
        i = U(number)
        size += staged[i].key_size + max(staged[i].value_size, np.int64(0))
    if counts[TOLD] + scan_state.staged > len(told) or counts[USED] + size > len(copied):
        return False
    for number in range(scan_state.staged):
        i, row = U(number), U(counts[TOLD])
        if staged[i].kind == a.PASSED:
            _pass(counts, np.int64(staged[i].offset))
            continue
        _end_run(counts, told, row)
        told[row, TOLD_OFFSET] = staged[i].offset
        told[row, TOLD_TIME] = bt.time_at(records.data, at, staged[i].timestamp_delta)
        told[row, TOLD_KEY] = counts[USED]
        told[row, TOLD_KEY_SIZE] = staged[i].key_size
        told[row, TOLD_VALUE_SIZE] = staged[i].value_size
        counts[TOLD] += 1
        _copy(counts, records.source, staged[i].key_at, staged[i].key_size, copied)
        _copy(counts, records.source, staged[i].value_at, staged[i].value_size, copied)
    return True


@inlined
def _copy(counts: Any, source: Any, start: Any, size: Any, copied: Any) -> None:
    for i in range(size):
        copied[U(counts[USED] + i)] = source[U(start + i)]
    counts[USED] += max(size, np.int64(0))


@inlined
def _choose(
    counts: Any, arrays: a.Arrays, names: Any, buffers: a.Buffers, data: Any, chosen: Any, told: Any, copied: Any
) -> Any:
    """Choose or pass the batch at ``scan_state.at``, or return why not."""
    scan_state, staged = arrays.scan_state, buffers.staged
    at = scan_state.at
    scan_state.staged = 0
    size = bt.next_batch_at(scan_state, data, at, np.int64(len(data)))
    outcome = np.int64(sc.take(arrays, buffers, data, at, size))
    source = buffers.window if scan_state.in_window else data
    records = a.Records(buffers.staged, source, data)
    if outcome == oc.FINISHED:
        outcome = np.int64(_look(counts, arrays, names, records, at))
    if outcome != oc.FINISHED:
        return outcome
    is_chosen = counts[CHOSEN_AT] == at
    is_told = is_chosen and counts[IS_BARE] and bt.attributes_of(data, at) & bt.CONTROL_MASK == 0
    if is_told and not _tell(counts, scan_state, records, at, told, copied):
        return np.int64(oc.NEEDS_COPY)
    if is_chosen or counts[WITH_BATCHES]:
        _add(counts, chosen, at, size, is_chosen)
    if not is_chosen:
        for number in range(scan_state.staged):
            _pass(counts, np.int64(staged[U(number)].offset))
    sc.accept(scan_state, data, at, size, staged, np.int64(0))
    return outcome


@kernel
def choose(
    counts: Longs,
    arrays: a.Arrays,
    names: LongRows,
    buffers: a.Buffers,
    data: Bytes,
    chosen: LongRows,
    told: LongRows,
    copied: Bytes,
) -> Any:
    """Choose batches of a segment from ``scan_state.at`` on; return why it stopped, with a row for all it passed."""
    scan_state = arrays.scan_state
    begin = scan_state.at
    counts[CHOSEN] = counts[TOLD] = counts[USED] = 0
    outcome = np.int64(oc.FINISHED)
    while outcome == oc.FINISHED and scan_state.at < scan_state.stop:
        if scan_state.at - begin >= scan_state.pause or counts[CHOSEN] + 1 >= len(chosen):
            outcome = np.int64(oc.PAUSED)
        else:
            outcome = np.int64(_choose(counts, arrays, names, buffers, data, chosen, told, copied))
    scan_state.staged = 0
    if counts[FIRST] != a.NOTHING:
        _add(counts, chosen, np.int64(a.NOTHING), np.int64(0), False)
    return outcome
