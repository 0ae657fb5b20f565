"""A rescue's plan for the source made one for the target, and what of it could not be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from offsets_log.restore import share_groups
from offsets_log.restore.rows import is_share_row
from offsets_log.rows.tables import GROUP_COLUMN, TOPIC_PARTITION_COLUMNS, Column, Row
from offsets_log.translation.answers import AT_LEAST, BY_TIME, WAYS, Answer, Told, Untold
from offsets_log.translation.names import Rename
from offsets_log.translation.share_starts import share_row, starts_of
from offsets_log.words import counted

TRANSLATION_COLUMNS = (
    GROUP_COLUMN,
    *TOPIC_PARTITION_COLUMNS,
    Column("source_offset", "bigint", "the offset in the source"),
    Column("target_group", "string", "group id on the target"),
    Column("target_topic", "string", "topic on the target"),
    Column("target_partition", "int", "partition of that topic"),
    Column("target_offset", "bigint", "the offset there"),
    Column("how", "string", "exact, by count, at least, by time, or with --allow-skip at most"),
    Column("reread_at_most", "bigint", "how many records are read again at most; null if that is not known"),
    Column("skipped", "bigint", "how many records may be skipped; 0 without --allow-skip"),
)
"""Of rows of ``translation.jsonl``; those of places where share groups start have also ``is_share``."""

OfSource = ("pending", "orphans", "duplicates")
"""Lists of a plan that count the source's offsets."""


WithLogEnds = Callable[[Sequence[Row]], Iterable[Row]]
"""Adds to share offsets of the target what its logs tell of them."""


@dataclass(frozen=True, slots=True)
class PlacedOffset:
    """What is said of a row of the plan.

    Attributes:
        leader_epoch: of the last record that was read, as the target's log has it; None for none.
    """

    topic: str
    partition: int
    told: Told
    leader_epoch: int | None = None


def translated_plan(
    plan: Row,
    place_of: Callable[[Row], PlacedOffset],
    rename_group: Rename,
    doubts: Sequence[str] = (),
    with_log_ends: WithLogEnds = iter,
) -> Row:
    """Return the plan for the target.

    ``offsets`` and ``share_offsets`` have the target's names and offsets, with the source's beside them;
    ``translation`` the same in short; ``left_out`` the rows of which nothing is told, with the reason.

    Args:
        place_of: tells the place of each row of `asked_of`.
        doubts: what else is doubtful of the translation, a sentence each.
    """
    offsets, left_out = _all_translated(plan["offsets"], place_of, rename_group)
    starts, starts_left_out = _all_translated(starts_of(plan), place_of, rename_group)
    groups = [row | {"group": rename_group(row["group"])} for row in plan["groups"]]
    told = {
        "offsets": offsets,
        "groups": [{name: value for name, value in row.items() if name != "group_base64"} for row in groups],
        "topics": _topics(offsets),
        **{name: [] for name in OfSource},
        "translation": [_short(row) for row in (*offsets, *starts)],
        "left_out": [*left_out, *starts_left_out],
    }
    if "share_offsets" in plan:
        there = [share_row(row, lambda asked: place_of(asked).told) for row in starts]
        refused = [row for row in plan["share_offsets"] if share_groups.refusal(row) is not None]
        told["share_offsets"] = [*with_log_ends(there), *refused]
    new_plan = {name: value for name, value in plan.items() if name not in ("doubts", "problems")} | told
    return new_plan | {"doubts": [*_doubts(new_plan), *doubts, *plan["doubts"]], "problems": plan["problems"]}


def _all_translated(
    rows: Iterable[Row], place_of: Callable[[Row], PlacedOffset], rename_group: Rename
) -> tuple[list[Row], list[Row]]:
    """Return rows of offsets with the target's names and offsets, in their order there, and those that are left out."""
    kept: dict[tuple[str, str, int], Row] = {}
    left_out: list[Row] = []
    for row in rows:
        place = place_of(row)
        if isinstance(place.told, Untold):
            left_out.append(row | {"target_topic": place.topic, "tool": "translate", "reason": place.told.reason})
            continue
        new = _translated(row, place, place.told, rename_group)
        key = new["group"], new["topic"], new["partition"]
        if key in kept:
            new, other = _both(kept[key], new)
            left_out.append(_merged(other, new))
        kept[key] = new
    return [kept[key] for key in sorted(kept)], left_out


def _translated(row: Row, place: PlacedOffset, answer: Answer, rename_group: Rename) -> Row:
    """Return a row with the target's names; raw bytes of names that were replaced are dropped."""
    group = rename_group(row["group"])
    new = row | {
        "group": group,
        "topic": place.topic,
        "partition": place.partition,
        "committed_offset": answer.target_offset,
        "leader_epoch": place.leader_epoch,
        "topic_id": None,
        "source_group": row["group"],
        "source_topic": row["topic"],
        "source_partition": row["partition"],
        "source_offset": row["committed_offset"],
        "how": answer.how,
        "reread_at_most": answer.reread_at_most,
        "skipped": answer.skipped,
    }
    replaced = {"group_base64": group != row["group"], "topic_base64": place.topic != row["topic"]}
    return {name: value for name, value in new.items() if not replaced.get(name)}


def _both(one: Row, other: Row) -> tuple[Row, Row]:
    """Return the earlier of two rows that are to be one in the target, as it stands for both, and the other."""
    first, later = sorted((one, other), key=lambda row: int(row["committed_offset"]))
    if first["committed_offset"] == later["committed_offset"]:
        return first, later
    return first | {"how": first["how"] if first["skipped"] else AT_LEAST, "reread_at_most": None}, later


def _merged(row: Row, kept: Row) -> Row:
    """Return the row of ``left_out`` for an offset that another one stands for."""
    place = f"{row['topic']}-{row['partition']}"
    own = {name: row[f"source_{name}"] for name in ("group", "topic", "partition")}
    reason = (
        f"its records are in {place} with those of {kept['source_topic']}-{kept['source_partition']}, whose earlier "
        f"offset {kept['committed_offset']} stands for both; its own would be {row['committed_offset']}"
    )
    return row | own | {"committed_offset": row["source_offset"], "target_topic": row["topic"]} | {
        "tool": "translate", "reason": reason
    }  # fmt: skip


def _short(row: Row) -> Row:
    places = {"group": row["source_group"], "topic": row["source_topic"], "partition": row["source_partition"]}
    targets = {f"target_{name}": row[name] for name in ("group", "topic", "partition")}
    found = row | places | targets | {"target_offset": row["committed_offset"]}
    of_share = {"is_share": True} if is_share_row(row) else {}
    return {column.name: found[column.name] for column in TRANSLATION_COLUMNS} | of_share


def _topics(offsets: list[Row]) -> dict[str, int]:
    needed: dict[str, int] = {}
    for row in offsets:
        needed[row["topic"]] = max(needed.get(row["topic"], 0), row["partition"] + 1)
    return dict(sorted(needed.items()))


def _doubts(new: Row) -> Iterator[str]:
    yield f"these are offsets of another cluster than the log's, translated: {in_words(new)}"
    unsure = [row for row in new["translation"] if row["how"] in (AT_LEAST, BY_TIME)]
    if unsure:
        known = [row["reread_at_most"] for row in unsure if row["reread_at_most"] is not None]
        most = f", at most {sum(known)} in all where that is known, {max(known)} of one partition" if known else ""
        yield f"records may be read again, as translation.jsonl says{most}: {counted(len(unsure), 'offset')}"
    skipping = [row["skipped"] for row in new["offsets"] if row["skipped"]]
    if skipping:
        most = f"at most {sum(skipping)} in all, {max(skipping)} of one partition"
        yield f"records may be skipped, as was allowed, {most}: {counted(len(skipping), 'offset')}"
    if new["left_out"]:
        yield f"offsets that could not be translated, as left-out.jsonl says: {len(new['left_out'])}"


def in_words(plan: Row) -> str:
    """Return how many offsets of a translated plan were told in which way."""
    ways = Counter(row["how"] for row in plan["translation"])
    parts = [f"{ways[way]} {way}" for way in WAYS if ways[way]]
    return ", ".join([*parts, f"{len(plan['left_out'])} not told"])
