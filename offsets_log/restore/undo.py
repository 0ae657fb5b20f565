"""Put back what was there before `restore`, according to its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.restore.changes import UNCHANGED, Change, Note, carry_out, kind_of, refuse_active
from offsets_log.restore.journal import Entry, Key
from offsets_log.restore.target import NO_GROUP, Committed, Target


def undo(target: Target, entries: Mapping[Key, Entry], note: Note | None) -> Iterator[Change]:
    """Yield one change for each offset that was, or may have been, set; offsets that did not exist before are deleted.

    An offset that somebody else has moved since is refused. A group that did not exist before stays, without offsets.

    Args:
        entries: the entries of the journal to put back.
        note: records what is done; None to change nothing and only look.

    Raises:
        ClusterLostError: the cluster no longer answers; changes that were not yielded were not put back, except perhaps
            the offsets that were noted last.
        ClusterError: the cluster does not list its groups, and nothing was done.
    """
    states = target.group_states()
    order = sorted(entries, key=lambda key: (key[0], entries[key].is_share, key))
    for (group, is_share), keys in groupby(order, key=lambda key: (key[0], entries[key].is_share)):
        own, offsets = {key: entries[key] for key in keys}, target.share_groups if is_share else target
        try:
            current = offsets.offsets(group)
        except ClusterLostError:
            raise
        except ClusterError as error:
            changes = [_change(key, entry, None, str(error)) for key, entry in own.items()]
        else:
            changes = [_change(key, entry, current.get(key[1:]), None) for key, entry in own.items()]
        for change in changes:
            refuse_active(change, states.get(group, NO_GROUP))
        if note is not None:
            carry_out(offsets, group, changes, note)
        yield from changes


def _change(key: Key, entry: Entry, current: Committed | None, problem: str | None) -> Change:
    group, topic, partition = key
    change = Change(
        group=group,
        topic=topic,
        partition=partition,
        current=current,
        wanted=entry.before,
        kind=kind_of(entry.before, current),
        reason=problem,
        is_uncertain=entry.is_open,
        is_share=entry.is_share,
    )
    if problem is None and change.kind != UNCHANGED and current not in entry.ours:
        change.reason = "somebody has moved it since: it is left as it is"
    return change
