"""The cluster that is to get offsets, as a copy or live, judged and never changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from offsets_log.disk.urls import without_secrets
from offsets_log.release_names import rules_in_words
from offsets_log.session.scope import Scope

if TYPE_CHECKING:
    from offsets_log.actions.rescue_asked import TargetAsked
    from offsets_log.replay.profile import Profile
    from offsets_log.restore.judging import Judged
    from offsets_log.rows.tables import Row
    from offsets_log.session.account import Account
    from offsets_log.session.inputs import Inputs
    from offsets_log.session.session import Session


def add_judgement(session: Session, plan: Row, asked: TargetAsked, profile: Profile) -> list[Row] | None:
    """Judge the target, if one is given, and add to the plan what is wrong with it; return the rows of such offsets.

    Args:
        profile: by whose rules the groups of a copy are loaded.

    Raises:
        OffsetsLogError: the copy cannot be read, or the cluster does not answer.
    """
    from offsets_log.restore.judging import in_words, judge
    from offsets_log.restore.plan import rows_of
    from offsets_log.restore.rows import counted_rows

    if not asked.paths and asked.bootstrap_server is None:
        return None
    rows = rows_of(plan)
    with _opened(session, asked, profile) as (target, name):
        judged = list(judge(target, rows))
        plan["target"] = {
            "name": asked.bootstrap_server or [*map(without_secrets, asked.paths)],
            "cluster_id": target.cluster_id(),
            "judged": len(rows),
            "problems": len(judged),
        }
    said = list(in_words(judged, name)) or [f"{name}: all {counted_rows(rows)} will do there"]
    plan["doubts"] = [*said, *plan["doubts"]] if judged else plan["doubts"]
    if not judged:
        session.account.say(said[0])
    return judged


@contextmanager
def _opened(session: Session, asked: TargetAsked, profile: Profile) -> Iterator[tuple[Judged, str]]:
    if asked.bootstrap_server is not None:
        from offsets_log.cluster.admin import Cluster
        from offsets_log.cluster.properties import read_properties

        properties = read_properties(asked.command_config, session.account.say)
        with closing(Cluster(asked.bootstrap_server, properties)) as cluster:
            yield cluster, "on the target"
        return
    from offsets_log.disk.reader import open_logs
    from offsets_log.session.inputs import Inputs

    with ExitStack() as stack:
        opened = stack.enter_context(open_logs(asked.paths, may_lack_offsets=True))
        yield _copied(session, Inputs(Scope(paths=asked.paths), opened), profile)


def _copied(session: Session, inputs: Inputs, profile: Profile) -> tuple[Judged, str]:
    from offsets_log.broker.home import at_home
    from offsets_log.errors import InputError
    from offsets_log.restore.copied_target import CopiedTarget
    from offsets_log.session.engine import Engine

    if not inputs.copied_logs:
        raise InputError(
            "no partition of a user's topic is in this target: give a whole data directory, or what pull wrote",
            file=without_secrets(inputs.scope.paths[0]),
        )
    engine = Engine(inputs, session.account.aside(inputs))
    loaded = {log.offsets_partition: state for log, state, _ in engine.load_whole(profile, whole_groups=True)}
    states = at_home(loaded, inputs.count_of(loaded.items())).values()
    ids = {identity.cluster_id for identity in inputs.clusters.identities} - {None}
    for words in inputs.notes:
        session.account.say(f"target: {words}")
    groups = f"loaded by the rules of {rules_in_words(profile.name)}" if states else "which has no offsets topic"
    name = f"in the copy of the target, {groups}"
    cluster_id = ids.pop() if len(ids) == 1 else None
    starts = _share_starts(inputs, session.account)
    return CopiedTarget(cluster_id, inputs.topics, inputs.copied_logs, states, profile, starts), name


def _share_starts(inputs: Inputs, account: Account) -> Iterator[tuple[str, tuple[str, int], int]]:
    """Yield where share groups start in a copy: group, topic and partition, offset."""
    from offsets_log.messages.internal_topics import SHARE_GROUP_STATE

    if not inputs.copied_logs.partition_count(SHARE_GROUP_STATE):
        return
    states = inputs.share_states
    for damage in states.damages:
        account.on_damage(damage)
    for key, state in states.by_key.items():
        topic = inputs.topic_ids.get(bytes(key.topic_id))
        if topic is not None and state.start_offset >= 0:
            yield key.group, (topic, key.partition), state.start_offset
