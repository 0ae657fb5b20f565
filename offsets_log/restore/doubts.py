"""Say what is missing or doubtful about offsets to restore, one sentence each, so that nothing is found out later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice

from offsets_log.coordinator_document import Memory, PartitionPart
from offsets_log.data_directory.stranded import ABSENT, BELOW, BEYOND, FORMER, Stranded, in_words
from offsets_log.data_directory.transactions import DECIDED, HANGING
from offsets_log.log_format.completeness import below_start
from offsets_log.replay.partition_for import partition_for
from offsets_log.restore import share_groups
from offsets_log.restore.doubtful import BELOW_START
from offsets_log.restore.names import shown
from offsets_log.restore.tools import left_out
from offsets_log.rows.tables import Row, partition_name
from offsets_log.words import counted

NAMED = 20
"""Maximum number of groups or partitions that a sentence names."""
SHARE = "share"
"""The type of groups whose offsets are not in ``__consumer_offsets``."""
IDLE_STATES = ("Empty", "Dead")
"""States of groups without members; members of any other group are the only ones who may commit for it."""


def is_active(state: str | None) -> bool:
    """Whether members hold the group, so that its offsets cannot be set (``ConsumerGroupCommand``).

    The answer is False for an unknown state (None).
    """
    return state is not None and state.capitalize() not in IDLE_STATES


def of_damage(corrupt: int, unsupported: int) -> Iterator[str]:
    """Describe pieces that could not be read."""
    if corrupt or unsupported:
        yield (
            f"pieces of the log that could not be read: {corrupt} corrupt, {unsupported} unsupported; a commit in one "
            "of them is missing, and an older one may stand for it"
        )


def of_untold(rows: Sequence[Row]) -> Iterator[str]:
    """Describe offsets that a text does not tell, as rows of ``compact``."""
    if rows:
        groups = dict.fromkeys(row["group"] for row in rows)
        yield (
            "offsets that are left out, because it is not told whether their last commits took effect: "
            f"{len(rows)} of {counted(len(groups), 'group')}: {named(groups)}"
        )


def of_doubtful(rows: Sequence[Row]) -> Iterator[str]:
    """Describe the rows of `doubtful_rows`."""
    older = [row for row in rows if row.get(BELOW_START) is None]
    deleted = [row for row in rows if row.get(BELOW_START) is not None]
    for why, some in (
        ("may be older than a commit that is missing or could not be read", older),
        ("are below the log start offset, deleted, so that no broker serves them", deleted),
    ):
        if some:
            groups = dict.fromkeys(row["group"] for row in some)
            yield (
                f"offsets that {why}, as doubtful.jsonl says: {len(some)} of {counted(len(groups), 'group')}: "
                f"{named(groups)}"
            )


def of_logs(memory: Memory) -> Iterator[str]:
    """Describe what is missing at the beginning, in the middle and at the end of each log."""
    for part in memory.parts:
        name = partition_name(part.log.offsets_partition)
        lost = [missing.in_words() for missing in part.found.missing if missing.is_lost]
        yield from lost
        if (below := below_start(part.log)) is not None:
            yield below.in_words()
        elif not lost and (base_offset := _begins_at(part)):
            yield (
                f"offsets partition {name} begins at record offset {base_offset}: files before it are missing, and "
                "with them every commit that was not renewed since"
            )
        tells_gaps = "record_offset" not in part.log.missing_columns and not part.log.cleaned_until
        if part.found.missing_offsets and tells_gaps:
            yield (
                f"offsets partition {name}: "
                f"{counted(part.found.missing_offsets, 'record offset is', 'record offsets are')} in no batch that can "
                "be read, and no cleaner-offset-checkpoint says that they were compacted away"
            )
        for words, is_blank in part.found.tails.items():
            lacking = (
                "they hold no commit, and one is missing only if the machine crashed before its disk had it"
                if is_blank
                else "a commit there, if there was one, is missing"
            )
            yield f"offsets partition {name}: {words}; {lacking}"
        if part.log.offsets_partition is None:
            yield (
                "a file tells no offsets partition: whether its groups belong there was not checked, and which offsets "
                "partitions are absent, with their groups, is not known"
            )


def _begins_at(part: PartitionPart) -> int | None:
    """Return the record offset where a log begins: the one in its file's name, or else its first record's."""
    if not part.log.segments or "record_offset" in part.log.missing_columns:
        return None
    base_offset = part.log.segments[0].base_offset
    return part.found.first_offset if base_offset is None else base_offset


UNTOLD = {
    "state": "whether a group had members is not told: stop all of them before their offsets are set",
    "leader_epoch": "leader epochs are not told, and plan.json has none",
    "commit_timestamp_ms": "when offsets were committed is not told: how old they are is not known",
    "record_offset": "places in the log are not told: of several commits the one that was printed last is taken",
}
"""Column that a source does not have → what that means for restoring."""


def of_sources(missing_columns: Set[str]) -> Iterator[str]:
    """Describe what dumps do not contain."""
    yield from (sentence for column, sentence in UNTOLD.items() if column in missing_columns)


def of_plan(plan: Row) -> Iterator[str]:
    """Describe what the plan holds and lacks."""
    yield from of_partitions(plan)
    yield from _of_groups(plan)
    offsets = plan["offsets"]
    if plan["duplicates"]:
        groups = named(dict.fromkeys(row["group"] for row in plan["duplicates"]))
        yield (
            "offsets from a second offsets partition of their group, which does not count: "
            f"{len(plan['duplicates'])} of {groups}"
        )
    if plan["orphans"]:
        yield f"offsets of groups that do not exist any more, which are not restored: {len(plan['orphans'])}"
    if losing := sum(row["metadata"] != "" for row in offsets):
        yield (
            "offsets with metadata, which only plan.json and client-libraries/offsets.json hold and the other tools "
            f"erase: {losing}"
        )
    if explicit := sum(row["expire_timestamp_ms"] is not None for row in offsets):
        yield f"offsets that had an expiry of their own, which nothing can set again: {explicit}"
    if refused := Counter(row["tool"] for row in left_out(offsets)):
        counts = ", ".join(f"{count} of those for {tool}" for tool, count in refused.items())
        yield f"some files lack offsets that their tool cannot take, as left-out.jsonl says: {counts}"


def of_partitions(plan: Row) -> Iterator[str]:
    """Describe absent offsets partitions, from a plan's ``offsets_partitions``, ``filters`` and ``groups``."""
    count, absent = plan["offsets_partitions"]["count"], plan["offsets_partitions"]["absent"] or []
    asked = plan["filters"]["offsets_partitions"]
    if asked:
        words = "offsets partition {} was" if len(asked) == 1 else "offsets partitions {} were"
        yield f"only {words.format(some_of(asked))} read, as asked"
    if plan["offsets_partitions"]["source"] == "guess":
        yield (
            "how many partitions __consumer_offsets has is not known, and with it which of them are absent and whether "
            "groups are where they belong: --partitions N says it"
        )
        return
    if absent and not asked:
        whole = f"{count}, Kafka's default" if plan["offsets_partitions"]["source"] == "default" else str(count)
        share = (
            f"one in {round(count / len(absent))} of all"
            if len(absent) * 2 <= count
            else f"{len(absent)} of {count} groups"
        )
        yield (
            f"offsets partitions that are absent, {len(absent)} of {whole}: {some_of(absent)}; the groups whose hash "
            f"leads there are missing, about {share}"
        )
    found = {row["group"] for row in plan["groups"]}
    for group in plan["filters"]["groups"]:
        home = partition_for(group, count)
        if group not in found and not set(group) & set("*?[") and home in absent:
            yield f"group {shown(group)} lives in offsets partition {home}, which was not read"


RESTORED = {
    BEYOND: "kafka-consumer-groups sets the log end instead; others set them, and consumers go where auto.offset.reset "
    "says",
    BELOW: "kafka-consumer-groups sets the log start instead; others set them, and consumers go where "
    "auto.offset.reset says",
    ABSENT: "no tool sets these unless the topic is made first",
    FORMER: "set again they count records of another topic",
}
"""Rule → what comes of such offsets when they are restored."""


def of_stranded(stranded: Iterable[Stranded]) -> Iterator[str]:
    """Yield sentences about offsets that lead to no record in the brokers' logs."""
    found: dict[str, list[Stranded]] = {}
    for one in sorted(stranded, key=lambda one: (one.value.group, one.value.topic, one.value.partition)):
        found.setdefault(one.rule, []).append(one)
    for rule, some in sorted(found.items()):
        groups = named(dict.fromkeys(one.value.group for one in some))
        yield f"{in_words(rule, some)}; of {groups}; {RESTORED[rule]} ({rule})"


def _of_groups(plan: Row) -> Iterator[str]:
    if active := [*dict.fromkeys(row["group"] for row in plan["groups"] if is_active(row["state"]))]:
        yield f"groups with running consumers ({len(active)}), which you must stop before you restore: {named(active)}"
    if untold := [*dict.fromkeys(row["group"] for row in plan["groups"] if row["state"] is None)]:
        yield f"groups of which nothing tells whether consumers are running ({len(untold)}): {named(untold)}"
    share = [*dict.fromkeys(row["group"] for row in plan["groups"] if row["type"] == SHARE)]
    if "share_offsets" in plan:
        yield from _of_share_offsets(plan["share_offsets"], share)
    elif share:
        yield (
            f"share groups ({len(share)}), which cannot be restored, as their positions are in __share_group_state: "
            f"{named(share)}"
        )
    waiting = Counter(row["group"] for row in plan["pending"])
    if waiting:
        yield (
            f"offsets in open transactions, whose end is not known, so that the values before them are taken: "
            f"{waiting.total()} of {named(waiting)}"
        )
    yield from _of_outcomes(plan["pending"])
    yield from of_strays(plan)


def of_strays(plan: Row) -> Iterator[str]:
    """Yield which groups are not in their own offsets partition, and which offsets are from there alone."""
    homes = plan["offsets_partitions"]["count"]
    if plan["offsets_partitions"]["source"] == "guess":
        return

    def strays(rows: Sequence[Row]) -> list[str]:
        where = ((row["group"], row["offsets_partition"]) for row in rows)
        return [group for group, number in where if number not in (None, partition_for(group, homes))]

    if astray := strays(plan["groups"]):
        yield (
            f"groups in an offsets partition that is not theirs ({len(astray)}), where no broker looks for them: "
            f"{named(astray)}"
        )
    if offered := Counter(group for group in strays(plan["offsets"]) if group in astray):
        yield (
            "offsets that are here though they are only in an offsets partition that is not theirs, where no broker "
            f"looks: {offered.total()} of {named(offered)}"
        )


def _of_outcomes(pending: Sequence[Row]) -> Iterator[str]:
    """Yield what becomes of open transactions by their coordinator's log, and the commands for those that hang."""
    found: dict[str, list[Row]] = {}
    for row in pending:
        if row.get("outcome") is not None:
            found.setdefault(row["outcome"], []).append(row)
    for outcome, rows in sorted(found.items()):
        by = ", which --decide ends" if outcome in DECIDED else ""
        groups = named(dict.fromkeys(row["group"] for row in rows))
        yield f"of these, {len(rows)} of {groups} in transactions that are {outcome} by __transaction_state{by}"
    yield from of_hanging(row["abort_command"] for row in found.get(HANGING, ()))


def of_hanging(commands: Iterable[str | None]) -> Iterator[str]:
    """Yield the commands for transactions that hang, as far as they are known."""
    if found := dict.fromkeys(filter(None, commands)):
        yield f"what ends the hanging transactions, on the cluster that they are of: {some_of(found)}"


def _of_share_offsets(rows: Sequence[Row], groups: Sequence[str]) -> Iterator[str]:
    if without := sorted(set(groups) - {row["group"] for row in rows}):
        yield f"share groups of which __share_group_state here tells nothing ({len(without)}): {named(without)}"
    taken = [row for row in rows if share_groups.refusal(row) is None]
    twice = share_groups.count_delivered_twice(taken)
    if twice:
        yield (
            "records that share groups had done above where they start, which are delivered again, as "
            f"{share_groups.NAME}/delivered-twice.jsonl says: {twice}"
        )
    if len(taken) < len(rows):
        yield (
            f"places of share groups that cannot be set, as {share_groups.NAME}/left-out.jsonl says: "
            f"{len(rows) - len(taken)}"
        )


def named(groups: Iterable[str]) -> str:
    """Return the names as `some_of` does."""
    return some_of([shown(group) for group in groups])


def some_of(values: Iterable[object]) -> str:
    """Return the values, or the first of them and how many more there are."""
    values = list(values)
    more = len(values) - NAMED
    return ", ".join(map(str, islice(values, NAMED))) + (f" and {more} more" if more > 0 else "")
