"""Write and read the lossless plan: all that is known of the offsets to restore, as one JSON document.

======================  ==============================================================================================
``format``              ``"offsets-log rescue plan"``
``format_version``      1; a reader refuses a higher one
``profile``             whose rules the log was replayed by: ``modern``, ``modern-3.7`` or ``classic``
``snapshot``            only in a plan that `pull --from-admin` wrote: ``cluster_id``, ``began_ms``, ``ended_ms``; its
                        ``profile`` is null, and in rows of offsets when they were committed and where they stand
``refused``             only in such a plan: groups of which no offsets were told: ``group``, ``problem``
``unstable``            only in such a plan: offsets that an open transaction is about to change: ``group``, ``topic``,
                        ``partition``
``as_broker``           whether partitions whose load fails were left out
``until``               ``time_ms`` or null, and ``offsets``, a list of ``[offsets partition or null for all, offset]``
``filters``             ``groups`` and ``topics``, globs, and ``offsets_partitions``; empty lists for no filter
``offsets_partitions``  ``count`` of ``__consumer_offsets``, the ``source`` of that number (``option``, ``metadata``,
                        ``checkpoints``, ``data``, ``default``, ``guess``), and which of them were ``absent`` from the
                        input (null where a file does not tell which it is)
``end_offsets``         offsets partition → the offset where its log continues
``loads``, ``history``  offsets partition → as in ``rebuild``
``groups``              ``group``, ``type``, ``state``, ``protocol_type``, ``members`` (how many), ``offsets_partition``
``topics``              topic of ``offsets`` → how many partitions it has at least, by these and by what members of the
                        groups were assigned
``offsets``             rows of ``compact``: what to restore, no two of one group, topic and partition
``pending``             rows of ``rebuild``: offsets of transactions that were open
``orphans``             rows of ``compact`` whose group does not exist: a broker serves them to nobody
``duplicates``          rows of ``compact`` of a group that another offsets partition has with better right
``share_offsets``       rows of ``compact --table share-offsets``, with ``log_start_offset``, ``log_end_offset``,
                        ``start_timestamp_ms`` of the first record, and ``redelivered``, the runs of records that
                        were done above the start; only where the input has ``__share_group_state``
``doubtful``            rows of ``offsets`` that a later commit may have replaced, which is lost, and ``missing_until``,
                        the last record offset of what is lost there; and rows that were deleted, and the
                        ``below_log_start_offset`` that their records are below; only if there are any
``target``              only where one was judged: its ``name``, ``cluster_id``, and how many offsets, those where share
                        groups start among them, were ``judged`` and have ``problems`` there; ``target.jsonl`` has these
``doubts``              what is missing or doubtful, a sentence each
``problems``            pieces that could not be read: ``file``, ``position``, ``record_offset``, ``problem``
======================  ==============================================================================================

Offsets partitions are strings where they are keys; ``"unknown"`` is one whose number is not known. Names that were not
UTF-8 are written as a broker reads them, with their raw bytes in columns beside them (``group_base64`` …). A reader
needs ``format``, ``format_version`` and the first six columns of each row of ``offsets``; the rest is for people.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from offsets_log.errors import InputError
from offsets_log.restore import share_groups
from offsets_log.rows.tables import Row, to_json

FORMAT = "offsets-log rescue plan"
FORMAT_VERSION = 1

_INT32, _INT64 = 1 << 31, 1 << 63


def encode_plan(plan: Row) -> Iterator[str]:
    """Yield the document as text, with one line for each row of a list."""
    separator = "{\n"
    for name, value in plan.items():
        yield f"{separator} {to_json(name)}: "
        if isinstance(value, list) and value:
            yield "[\n  " + to_json(value[0])
            yield from (f",\n  {to_json(item)}" for item in value[1:])
            yield "\n ]"
        else:
            yield to_json(value)
        separator = ",\n"
    yield "\n}\n"


def decode_plan(raw: bytes, file: str) -> list[Row]:
    """Return the rows of ``offsets`` of a plan, and those of its ``share_offsets`` that can be set.

    Raises:
        InputError: it is no plan, it has another version, or one of its rows makes no sense.
    """
    try:
        plan = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is no rescue plan: not JSON: {error}", file=file) from None
    if not isinstance(plan, dict) or plan.get("format") != FORMAT:
        raise InputError(f'it is no rescue plan: "format" is not "{FORMAT}"; give plan.json of rescue', file=file)
    if plan.get("format_version") != FORMAT_VERSION:
        version = to_json(plan.get("format_version"))
        raise InputError(
            f"the plan's format version is {version}; this reads {FORMAT_VERSION}: use a newer offsets-log", file=file
        )
    rows = plan.get("offsets")
    if not isinstance(rows, list):
        raise InputError("the plan has no list of offsets", file=file, field="offsets")
    seen: set[tuple[str, str, int]] = set()
    for number, row in enumerate(rows):
        problem = _row_problem(row)
        if problem is None and (key := (row["group"], row["topic"], row["partition"])) in seen:
            problem = "the group, topic and partition of an earlier row"
        if problem is not None:
            raise InputError(problem, file=file, field=f"offsets[{number}]")
        seen.add(key)
    return rows + [as_offset(row) for row in _share_rows(plan, file)]


def rows_of(plan: Row) -> list[Row]:
    """Return the rows of ``offsets``, and where share groups start as such rows, as far as that can be set."""
    return [*plan["offsets"], *map(as_offset, settable_shares(plan))]


def settable_shares(plan: Row) -> list[Row]:
    """Return the ``share_offsets`` that can be set; those of a plan without them are none."""
    return [row for row in plan.get("share_offsets", ()) if share_groups.refusal(row) is None]


def _share_rows(plan: Row, file: str) -> list[Row]:
    """Return the plan's ``share_offsets`` that can be set. Raises InputError if one makes no sense."""
    rows = plan.get("share_offsets", [])
    if not isinstance(rows, list):
        raise InputError("this is no list", file=file, field="share_offsets")
    taken = []
    for number, row in enumerate(rows):
        try:
            is_right = share_groups.refusal(row) is None
            problem = _row_problem(as_offset(row)) if is_right else None
        except (KeyError, TypeError, AttributeError):
            problem, is_right = "this is no row of share offsets", False
        if problem is not None:
            raise InputError(problem, file=file, field=f"share_offsets[{number}]")
        if is_right:
            taken.append(row)
    return taken


def as_offset(row: Row) -> Row:
    """Return where a share group starts as a row of offsets."""
    return {
        "group": row["group"],
        "topic": row["topic"],
        "partition": row["partition"],
        "committed_offset": row["start_offset"],
        "leader_epoch": None,
        "metadata": "",
        "topic_id": row.get("topic_id"),
        "is_share": True,
    }


def _row_problem(row: Any) -> str | None:
    if not isinstance(row, dict):
        return "this is no JSON object"
    for name, check, what in (
        ("group", _is_text, "text"),
        ("topic", _is_text, "text"),
        ("partition", lambda value: _is_int(value, _INT32), "a 32-bit number"),
        ("committed_offset", lambda value: _is_int(value, _INT64), "a 64-bit number"),
        ("leader_epoch", lambda value: value is None or _is_int(value, _INT32), "a 32-bit number or null"),
        ("metadata", _is_text, "text"),
    ):
        if name not in row:
            return f"{name} is missing"
        if not check(row[name]):
            return f"{name} is not {what}"
    return None


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _is_int(value: Any, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound
