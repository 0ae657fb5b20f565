"""Find what brokers make of a partition, by how its broker was stopped: this decides what the next start recovers.

The data directory shows it (``.kafka_cleanshutdown``). If a copy lacks it, both kinds of shutdown are considered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from offsets_log.broker.failures import StartError
from offsets_log.broker.loading import ReplayInBulk
from offsets_log.broker.outcome import Outcome, on_brokers, start_error
from offsets_log.broker.recovery import has_nothing_beside, open_log
from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.late_batches import late_batches
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.release_names import rules_in_words
from offsets_log.replay.profile import Profile

CLEAN, UNCLEAN = "clean", "unclean"
SHUTDOWNS = {CLEAN: True, UNCLEAN: False}
"""Name → whether the broker was stopped cleanly."""
ADVERBS = {CLEAN: "cleanly", UNCLEAN: "uncleanly"}


def outcomes_by_shutdown(
    log: PartitionLog,
    profiles: Collection[Profile],
    *,
    is_damaged: bool,
    is_sound: bool = False,
    shutdown: str | None = None,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
    in_bulk: ReplayInBulk | None = None,
) -> dict[str, dict[Profile, Outcome]]:
    """Return what brokers make of a partition after each kind of shutdown that is possible.

    Args:
        is_damaged: whether something was read that is no whole batch, or no record of one.
        is_sound: whether all was read, and nothing that recovery would change (`recovery.has_nothing_beside`).
        shutdown: the kind of shutdown; None for what the data directory shows.
        until, release, in_bulk: see `on_brokers`.

    Returns:
        Nothing if brokers change nothing and load what is read here, or if there are no files.
    """
    stops = _stops(log, shutdown)
    if not _is_on_disk(log):
        return {}
    is_kept = all(start_error(log, profile) is None for profile in profiles)
    if is_kept and not is_damaged and _is_opened_as_it_is(log, stops, is_sound=is_sound, in_bulk=in_bulk is not None):
        return {}
    found = on_brokers(
        log, profiles, [SHUTDOWNS[stop] for stop in stops], until=until, release=release, in_bulk=in_bulk
    )
    return {stop: found[SHUTDOWNS[stop]] for stop in stops}


def in_words(outcomes: Mapping[str, Outcome], profile_name: str, offsets_partition: str) -> Iterator[str]:
    """Yield a sentence for each kind of shutdown, or a single one if it makes no difference."""
    where = f"offsets partition {offsets_partition}: a broker of {rules_in_words(profile_name)}"
    first = next(iter(outcomes.values()))
    if first.at_start is not None:
        yield start_in_words(first.at_start)
        return
    if all(outcome.equals(first) for outcome in outcomes.values()):
        yield f"{where} {first.in_words()}"
        return
    for shutdown, outcome in outcomes.items():
        yield f"{where}, if it was stopped {ADVERBS[shutdown]}, {outcome.in_words()}"


def iter_starts(logs: Iterable[PartitionLog], profile: Profile) -> Iterator[str]:
    """Yield a sentence for each thing that a broker's start stumbles over, in the data directories of these logs.

    The cluster's metadata has its say only where it was read for something else.
    """
    met = (start_error(log, profile, asks_metadata=False) for log in logs)
    yield from dict.fromkeys(start_in_words(error) for error in met if error is not None)


def start_in_words(error: StartError) -> str:
    """Return what a broker does at its start, why, and what to do about it."""
    does = "starts, and serves nothing of this" if error.starts else "does not start"
    return f"a broker {does}: {error.rule}: {error.problem} ({error.file}); {error.do}"


def _stops(log: PartitionLog, shutdown: str | None) -> tuple[str, ...]:
    told = log.checkpoints.stopped_cleanly if shutdown is None else SHUTDOWNS[shutdown]
    return tuple(stop for stop, is_clean in SHUTDOWNS.items() if told in (None, is_clean))


def _is_on_disk(log: PartitionLog) -> bool:
    """Whether the log consists of segments with their names, and not of what another tool printed of them."""
    return bool(log.segments) and all(
        segment.base_offset is not None and not segment.lines and not segment.missing_columns
        for segment in log.segments
    )


def _is_opened_as_it_is(log: PartitionLog, stops: Collection[str], *, is_sound: bool, in_bulk: bool) -> bool:
    first, last = log.segments[0], log.segments[-1]
    if (log.checkpoints.log_start_offset or 0) > (first.base_offset or 0) or (last is not first and not last.length):
        return False
    if is_sound and has_nothing_beside(log):
        return True
    opened = (
        open_log(
            log,
            stopped_cleanly=SHUTDOWNS[stop],
            finds_by_base_offset=True,
            reads_txnindex_as_message=True,
            in_bulk=in_bulk,
        )
        for stop in stops
    )
    ends = {batch.next_offset for batch in late_batches(log, 1)}
    return all(it.refusal is None and not it.cuts and ends <= {it.end_offset} for it in opened)
