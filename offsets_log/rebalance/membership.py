"""Joining and syncing: the classic group's state machine, on top of a coordinator's cache.

    Empty ─ join ─► PreparingRebalance ─ all joined, or time is over ─► CompletingRebalance ─ leader syncs ─► Stable
      ▲                    ▲                        │                            │                              │
      └──── nobody left ───┼────────────────────────┘                            │                              │
                           └──── a member joins again, leaves, or its session expires, or a sync is missing ─────┘

An assignment is written before the state becomes Stable (``W-11``), with the time at which the group began to wait for
it (``W-12``). Nothing is written of a generation that is never synced (``W-14``). If a write fails, the group
rebalances again (``W-15``). Members of a loaded group get their whole session timeout again (``L-41``). The caller
tells the time: `GroupMembership.tick` does what is due.

References: ``GroupMetadataManager.classicGroupJoin`` and what it calls, ``GroupCoordinator.scala``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.config import writes_of
from offsets_log.coordinator.errors import CoordinatorError, Errors
from offsets_log.coordinator.validation import MemberIdentity
from offsets_log.kafka_releases import NEWEST
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.rebalance.classic_group import (
    ClassicGroup,
    Joined,
    Joining,
    LiveMember,
    Pending,
    State,
    Synced,
    error_of_generation,
    error_of_member,
    replace_client,
    synced,
)
from offsets_log.rebalance.vote import JAVA, SCALA
from offsets_log.replay.group import CLASSIC
from offsets_log.replay.releases import release_named

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000


class GroupMembership:
    """The members of the classic groups of a coordinator.

    Args:
        cache: the cache to load groups from and to write them to.
        clock: returns the time in epoch milliseconds.
        release: the release that the cache has.
        new_member_id: makes the id of a member that comes without one (``G-9``).
    """

    def __init__(
        self,
        cache: GroupCoordinatorCache,
        clock: Callable[[], int],
        *,
        release: str = NEWEST.name,
        new_member_id: Callable[[Joining], str] = lambda joining: (
            f"{joining.group_instance_id or joining.client_id}-{uuid.uuid4()}"
        ),
    ) -> None:
        named = release_named(release)
        self._cache = cache
        self._clock = clock
        self._new_member_id = new_member_id
        self._value_version = writes_of(named).group_value_version
        self._writes_new_groups = named.asked.is_java
        self._orders = JAVA if self._writes_new_groups else SCALA
        self._groups: dict[str, ClassicGroup] = {}

    def group(self, group_id: str) -> ClassicGroup | None:
        """Return a classic group as it is now, for reading; None if there is none of this id."""
        live = self._cache.partition(self._cache.partition_for(group_id)).live.group(group_id)
        if live is not None and live.kind != CLASSIC:
            return None
        known = self._groups.get(group_id)
        if known is not None and live is None and known.generation > 0 and not known.members:
            del self._groups[group_id]  # deleted, or expired
            known = None
        if known is None and live is not None:
            known = self._groups[group_id] = ClassicGroup.loaded(live, self._orders, self._clock())
        return known

    # ------------------------------------------------------------------------------------------- joining

    def join(
        self, group_id: str, joining: Joining, member_id: str = "", *, knows_id_first: bool = False
    ) -> Pending[Joined]:
        """Answer JoinGroup when the join phase ends, or at once if nothing has to be waited for.

        Args:
            member_id: "" for a new member.
            knows_id_first: whether a new member only gets its id and must join again with it (JoinGroup 4 and later).
        """
        pending: Pending[Joined] = Pending()
        group = self.group(group_id)
        is_new_group = group is None
        if group is None:
            if member_id:
                return Pending(Joined(error=Errors.UNKNOWN_MEMBER_ID, member_id=member_id))
            group = self._groups[group_id] = ClassicGroup(group_id, self._orders, self._clock())
        error = self._refuses(group, joining, member_id)
        if error is not Errors.NONE:
            pending.answer = Joined(error=error, member_id=member_id)
        elif member_id:
            self._join_again(group, joining, member_id, pending)
        else:
            self._join_new(group, joining, pending, knows_id_first=knows_id_first)
        if is_new_group and self._writes_new_groups:
            try:
                self._write_new_group(group)
            except CoordinatorError as failed:
                pending.answer = Joined(error=failed.error)
        return pending

    def _refuses(self, group: ClassicGroup, joining: Joining, member_id: str) -> Errors:
        config = self._cache.group_config
        longest, shortest = config.group_max_session_timeout_ms, config.group_min_session_timeout_ms
        if not shortest <= joining.session_timeout_ms <= longest:
            return Errors.INVALID_SESSION_TIMEOUT
        is_known = member_id in group.members
        if group.state is not State.EMPTY and not is_known and len(group.members) >= config.group_max_size:
            return Errors.GROUP_MAX_SIZE_REACHED
        if not group.supports(joining):
            return Errors.INCONSISTENT_GROUP_PROTOCOL
        if member_id and member_id not in group.pending_joins:
            return error_of_member(group, MemberIdentity(member_id, joining.group_instance_id))
        return Errors.NONE

    def _join_new(
        self, group: ClassicGroup, joining: Joining, pending: Pending[Joined], *, knows_id_first: bool
    ) -> None:
        instance_id = joining.group_instance_id
        member_id = self._new_member_id(joining)
        if (before := group.static_member(instance_id)) is not None:
            self._replace_static(group, before, replace_client(joining, before.joining), member_id, pending)
        elif instance_id is None and knows_id_first:
            group.pending_joins[member_id] = self._clock() + joining.session_timeout_ms
            pending.answer = Joined(error=Errors.MEMBER_ID_REQUIRED, member_id=member_id)
        else:
            self._add(group, joining, member_id, pending)

    def _join_again(self, group: ClassicGroup, joining: Joining, member_id: str, pending: Pending[Joined]) -> None:
        if member_id in group.pending_joins:
            self._add(group, joining, member_id, pending)
            return
        member = group.members[member_id]
        is_same = member.joining.protocols == joining.protocols
        must_lead_anew = group.state is State.STABLE and group.leader == member_id
        if group.state is State.PREPARING_REBALANCE or must_lead_anew or not is_same:
            member.joining = replace_client(joining, member.joining)
            member.awaiting_join = pending
            self._rebalance_or_complete(group)
        else:
            pending.answer = group.joined(member_id, with_members=group.state is State.COMPLETING_REBALANCE)

    def _add(self, group: ClassicGroup, joining: Joining, member_id: str, pending: Pending[Joined]) -> None:
        if group.initial_delay_left_ms is not None:
            group.member_came = True
        due_ms = self._clock() + NEW_MEMBER_JOIN_TIMEOUT_MS
        group.add(LiveMember(member_id, joining, is_new=True, session_due_ms=due_ms, awaiting_join=pending))
        self._rebalance_or_complete(group)

    def _replace_static(
        self, group: ClassicGroup, before: LiveMember, joining: Joining, member_id: str, pending: Pending[Joined]
    ) -> None:
        """Give an instance a new member id; the old one is fenced, whatever it waits for (``G-8``)."""
        before.answer_join(Joined(error=Errors.FENCED_INSTANCE_ID, member_id=before.member_id))
        before.answer_sync(Synced(error=Errors.FENCED_INSTANCE_ID))
        leader = group.leader
        member = LiveMember(member_id, joining, before.assignment, awaiting_join=pending)
        self._replace(group, before, member)
        self._renew_session(member)
        if group.state is State.STABLE and group.select_protocol() == group.protocol:
            try:
                self._write(group, {each.member_id: each.assignment for each in group.members.values()})
            except CoordinatorError as error:
                self._replace(group, member, before)
                member.answer_join(Joined(error=error.error, generation=group.generation, leader=leader or ""))
            else:
                member.answer_join(group.joined(member_id, skip_assignment=group.leader == member_id))
        elif group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self._prepare(group)
        else:
            self._maybe_complete(group)

    @staticmethod
    def _replace(group: ClassicGroup, old: LiveMember, new: LiveMember) -> None:
        del group.members[old.member_id]
        group.members[new.member_id] = new
        group.pending_syncs.discard(old.member_id)
        if group.leader == old.member_id:
            group.leader = new.member_id

    # ------------------------------------------------------------------------------------- the join phase

    def _rebalance_or_complete(self, group: ClassicGroup) -> None:
        if group.state is State.PREPARING_REBALANCE:
            self._maybe_complete(group)
        else:
            self._prepare(group)

    def _prepare(self, group: ClassicGroup) -> None:
        """Begin a rebalance; an Empty group waits for more members to come first."""
        now_ms = self._clock()
        if group.state is State.COMPLETING_REBALANCE:
            self._reset(group, Errors.REBALANCE_IN_PROGRESS)
        group.sync_due_ms = None
        was_empty = group.state is State.EMPTY
        group.move_to(State.PREPARING_REBALANCE, now_ms)
        if was_empty:
            delay_ms = self._cache.group_config.group_initial_rebalance_delay_ms
            group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.member_came = False
            group.join_due_ms = now_ms + delay_ms
        else:
            group.join_due_ms = now_ms + group.rebalance_timeout_ms
            self._maybe_complete(group)

    def _maybe_complete(self, group: ClassicGroup) -> None:
        is_waiting = group.initial_delay_left_ms is not None
        if group.state is State.PREPARING_REBALANCE and not is_waiting and group.all_have_joined():
            self._complete_join(group)

    def _join_due(self, group: ClassicGroup) -> None:
        """End the join phase, or its first delay, because its time is over."""
        left_ms = group.initial_delay_left_ms
        if left_ms and group.member_came:
            delay_ms = self._cache.group_config.group_initial_rebalance_delay_ms
            group.member_came = False
            group.join_due_ms = self._clock() + min(delay_ms, left_ms)
            group.initial_delay_left_ms = max(left_ms - delay_ms, 0)
        else:
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        """Begin the next generation with the members that joined and the static ones (``G-7``)."""
        now_ms = self._clock()
        group.join_due_ms = group.initial_delay_left_ms = None
        for member in [each for each in group.members.values() if each.awaiting_join is None and not each.is_static]:
            group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:  # static members only, and none of them is here
            group.join_due_ms = now_ms + group.rebalance_timeout_ms
            return
        group.begin_generation(now_ms)
        if group.state is State.EMPTY:
            with suppress(CoordinatorError):  # the log keeps the older generation
                self._write(group, {})
            return
        for member in group.members.values():
            member.answer_join(group.joined(member.member_id))
            member.is_new = False
            self._renew_session(member)
        group.pending_syncs = set(group.members)
        group.sync_due_ms = now_ms + group.rebalance_timeout_ms

    # ------------------------------------------------------------------------------------------- syncing

    def sync(
        self, group_id: str, who: MemberIdentity, assignments: Mapping[str, bytes] | None = None
    ) -> Pending[Synced]:
        """Answer SyncGroup when the leader has synced.

        Args:
            assignments: only from the leader: member id → its assignment.
        """
        group = self.group(group_id)
        error = error_of_generation(group, who)
        if group is None or error is not Errors.NONE:
            return Pending(Synced(error=error))
        if group.state is State.PREPARING_REBALANCE:
            return Pending(Synced(error=Errors.REBALANCE_IN_PROGRESS))
        member = group.members[who.member_id]
        group.pending_syncs.discard(who.member_id)
        self._renew_session(member)
        if group.state is State.STABLE:
            return Pending(synced(group, member))
        pending = member.awaiting_sync = Pending()
        if who.member_id == group.leader:
            self._assign(group, dict(assignments or {}))
        return pending

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        try:
            self._write(group, assignments)
        except CoordinatorError as error:  # W-15
            self._reset(group, error.error)
            self._prepare(group)
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            member.answer_sync(synced(group, member))
        group.move_to(State.STABLE, self._clock())

    @staticmethod
    def _reset(group: ClassicGroup, error: Errors) -> None:
        for member in group.members.values():
            member.assignment = b""
            member.answer_sync(Synced(error=error))

    # ----------------------------------------------------------------------------------- staying, leaving

    def heartbeat(self, group_id: str, who: MemberIdentity) -> Errors:
        """Answer Heartbeat: REBALANCE_IN_PROGRESS tells the member to join again."""
        group = self.group(group_id)
        error = error_of_generation(group, who)
        if group is None or error is not Errors.NONE:
            return error
        self._renew_session(group.members[who.member_id])
        return Errors.REBALANCE_IN_PROGRESS if group.state is State.PREPARING_REBALANCE else Errors.NONE

    def leave(self, group_id: str, who: MemberIdentity) -> Errors:
        """Answer LeaveGroup; an administrator names a static member by its instance id alone."""
        group = self.group(group_id)
        if group is None:
            return Errors.UNKNOWN_MEMBER_ID
        if who.member_id in group.pending_joins:
            self._remove(group, who.member_id)
            return Errors.NONE
        if not who.member_id and (member := group.static_member(who.group_instance_id)) is not None:
            who = replace(who, member_id=member.member_id)
        error = error_of_member(group, who)
        if error is Errors.NONE:
            self._remove(group, who.member_id)
        return error

    def _remove(self, group: ClassicGroup, member_id: str) -> None:
        if (member := group.members.get(member_id)) is not None:
            member.answer_join(Joined(error=Errors.UNKNOWN_MEMBER_ID))
            member.answer_sync(Synced(error=Errors.UNKNOWN_MEMBER_ID))
        group.remove(member_id)
        if group.state is State.PREPARING_REBALANCE:
            self._maybe_complete(group)
        elif member is not None and group.state is not State.EMPTY:
            self._prepare(group)

    def tick(self) -> None:
        """Do what is due, such as ending join phases and expiring sessions; call this now and then."""
        for group in list(self._groups.values()):
            now_ms = self._clock()
            if group.join_due_ms is not None and now_ms >= group.join_due_ms:
                self._join_due(group)
            if group.sync_due_ms is not None and now_ms >= group.sync_due_ms:
                self._sync_due(group)
            for member_id in [each for each, due_ms in group.pending_joins.items() if now_ms >= due_ms]:
                self._remove(group, member_id)
            for member in list(group.members.values()):  # a removal may end a phase, which renews other sessions
                if now_ms >= member.session_due_ms and (member.is_new or not member.is_waiting):
                    self._remove(group, member.member_id)

    def _sync_due(self, group: ClassicGroup) -> None:
        """Remove the members that joined and did not sync in time."""
        group.sync_due_ms = None
        if group.pending_syncs and group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            for member_id in list(group.pending_syncs):
                group.remove(member_id)
            self._prepare(group)

    def _renew_session(self, member: LiveMember) -> None:
        member.session_due_ms = self._clock() + member.joining.session_timeout_ms

    # -------------------------------------------------------------------------------------------- writing

    def _write(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        self._append(group.group_id, group.value(assignments))

    def _write_new_group(self, group: ClassicGroup) -> None:
        """Write generation 0 without members or type, before the first real one (``records:W6``)."""
        nothing = ClassicGroup(group.group_id, self._orders, group.state_timestamp_ms)
        self._append(group.group_id, nothing.value({}))

    def _append(self, group_id: str, value: dict[str, Any]) -> None:
        record = CoordinatorRecord(
            record_type=2, key={"group": group_id}, value_version=self._value_version, value=value
        )
        number = self._cache.partition_for(group_id)
        self._cache.partition(number).append([record], self._clock())
