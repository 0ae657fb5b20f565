"""Two states that are compared: of two copies, or of one at two moments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offsets_log.disk.urls import without_secrets
from offsets_log.investigate.copies import ComparedPartition, Held, by_partition, partitions_of
from offsets_log.rows.tables import partition_name
from offsets_log.session import decide as deciding
from offsets_log.session.homes import Places, all_groups
from offsets_log.session.rules import Rules
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.investigate.copies import Loaded
    from offsets_log.questions.since import Since
    from offsets_log.replay.partition_count import PartitionCount
    from offsets_log.replay.profile import Profile
    from offsets_log.session.decide import DecideOptions
    from offsets_log.session.session import Session


@dataclass(frozen=True, slots=True)
class Comparison:
    """The two states to compare, and the run of the later one, which reports."""

    session: Session
    rules: Rules
    topic_ids: dict[bytes, str]
    parts: list[ComparedPartition] = field(default_factory=list)

    @property
    def missing_columns(self) -> frozenset[str]:
        """Columns that one state or another does not tell."""
        return frozenset().union(
            *(held.state.missing_columns for part in self.parts for held in (part.before, part.after))
        )


def moments_of(session: Session, profile: str | None, since: Since, decide: DecideOptions) -> Comparison:
    """Return the states of a copy at an earlier moment, and where the session's bounds are.

    Args:
        profile: whose rules to follow; None for what the files show.
        decide: for the later moment.

    Raises:
        OffsetsLogError: something cannot be read.
    """
    rules = Rules(session, profile)
    earlier, inputs = session.bounded(since.from_offset, since.from_time), session.inputs
    for words in inputs.iter_idle_offsets("--from-offset", since.from_offset):
        session.account.say(words)
    session.account.is_wrong |= earlier.inputs.lacks_some_in_time
    if since.from_time is not None:
        told = set(inputs.iter_idle_bounds())
        for words in (*earlier.inputs.iter_unread("--from-offset"), *inputs.iter_beyond(since.from_time)):
            if words not in told:
                session.account.say(words)
    before = [(log, state) for log, state, _ in earlier.engine.load_all(rules.profile)]
    after = _loaded(session, rules.profile, decide)
    comparison = Comparison(session, rules, inputs.topic_ids)
    if (count := _moved(session, rules.profile, before, after)) is not None:
        comparison.parts.extend(_moved_pairs(before, after, count))
    else:
        comparison.parts.extend(
            ComparedPartition(log.offsets_partition, Held((log,), old), Held((log,), new))
            for (_, old), (log, new) in zip(before, after, strict=True)
        )
    return comparison


def copies_of(earlier: Session, session: Session, profile: str | None, decide: DecideOptions) -> Comparison:
    """Return the states of two copies, A and B; the run of B reports. Arguments and errors are those of `moments_of`.

    Args:
        earlier: the run of A.
    """
    rules = Rules(session, profile)
    copy_a = _loaded(earlier, rules.profile, decide)
    session.account.is_wrong |= bool(earlier.account.exit_status)
    copy_b = _loaded(session, rules.profile, decide)
    comparison = Comparison(session, rules, earlier.inputs.topic_ids | session.inputs.topic_ids)
    if (count := _moved(session, rules.profile, copy_a, copy_b, earlier)) is not None:
        comparison.parts.extend(_moved_pairs(copy_a, copy_b, count))
    else:
        paths = (*earlier.inputs.scope.paths, *session.inputs.scope.paths)
        comparison.parts.extend(_pairs(session, (*map(without_secrets, paths),), copy_a, copy_b))
    for note in earlier.inputs.clusters.notes:
        session.account.say(note)
    return comparison


def _loaded(session: Session, profile: Profile, decide: DecideOptions) -> list[Loaded]:
    deciding.decide_if_asked(session, decide)
    loaded = [(log, state) for log, state, _ in session.engine.load_all(profile)]
    deciding.say_of_decided(session)
    return loaded


def _moved(
    session: Session, profile: Profile, before: list[Loaded], after: list[Loaded], earlier: Session | None = None
) -> PartitionCount | None:
    """Return how many offsets partitions there are if groups have to be compared wherever they are, and say why.

    So it is where groups are in a partition that is not theirs, and where the later of two whole copies has another
    number of partitions.

    Args:
        earlier: the run of the earlier of two copies.
    """
    places = Places(session, profile)
    for log, state in after:
        places.add(log, all_groups(state))
    count = places.homes.count
    places.tell_of_count()
    if count.is_guess or {log.offsets_partition for log, _ in after} != set(range(count.number)):
        return None
    if places.homes.strays:
        places.tell_of_groups("groups are compared wherever they are")
        return count
    if earlier is None:
        return None
    told = earlier.inputs.count_of((log.offsets_partition, state) for log, state in before)
    if told.number == count.number or {log.offsets_partition for log, _ in before} != set(range(told.number)):
        return None
    session.account.say(
        f"A has {counted(told.number, 'offsets partition')} and B {count.number}: groups are compared wherever they are"
    )
    return count


def _moved_pairs(before: list[Loaded], after: list[Loaded], count: PartitionCount) -> Iterator[ComparedPartition]:
    """Yield what both hold of the groups of each offsets partition, from whichever partition."""
    old, new = by_partition(before, count, moves=True), by_partition(after, count, moves=True)
    nothing = {id(copy): Held((copy[0][0],), copy[0][1].emptied(), is_whole=False) for copy in (before, after)}
    for partition in sorted(one for one in {*old, *new} if one is not None):
        yield ComparedPartition(
            partition, old.get(partition, nothing[id(before)]), new.get(partition, nothing[id(after)])
        )


def _pairs(
    session: Session, paths: tuple[str, ...], copy_a: list[Loaded], copy_b: list[Loaded]
) -> Iterator[ComparedPartition]:
    """Return the offsets partitions that both copies have; report those that only one has."""
    count = partitions_of(copy_a, copy_b, told=session.inputs.offsets_partition_count)
    if count is not None:
        session.account.say(
            "a copy does not tell its offsets partitions: its groups are taken to be where their names belong among "
            f"{counted(count.number, 'partition')}" + (", which is a guess" if count.is_guess else "")
        )
    held_a, held_b = by_partition(copy_a, count), by_partition(copy_b, count)
    for partition, held in held_b.items():
        if partition not in held_a:
            _say_left_out(session, partition, paths[1], held)
            continue
        part = ComparedPartition(partition, held_a.pop(partition), held)
        _say_if_reversed(session, part)
        yield part
    for partition, held in held_a.items():
        _say_left_out(session, partition, paths[0], held)


def _say_left_out(session: Session, partition: int | None, path: str, held: Held) -> None:
    session.account.is_wrong = True
    count = sum(1 for _ in held.state.iter_served())
    session.account.say(
        f"offsets partition {partition_name(partition)} is only in {path}: its "
        f"{counted(count, 'offset is', 'offsets are')} not compared"
    )


def _say_if_reversed(session: Session, part: ComparedPartition) -> None:
    before, after = part.before.end_offset, part.after.end_offset
    is_dump = any("position" in log.missing_columns for held in (part.before, part.after) for log in held.logs)
    if before is not None and after is not None and after < before and not is_dump:  # a paste may end anywhere
        session.account.say(
            f"offsets partition {partition_name(part.offsets_partition)}: B ends earlier than A, at record offset "
            f"{after} instead of {before}. If both are copies of one log, swap them: the changes are listed backwards"
        )
