"""Checks of who may commit, fetch and delete offsets of a group, by the group's kind (``W-7``, ``E-20``).

REBALANCE_IN_PROGRESS is never answered: no log holds the state of a rebalance (``L-24``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from offsets_log.coordinator.errors import CoordinatorError, Errors
from offsets_log.replay.expiry import subscribed_topics
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS, Group, Member
from offsets_log.words import counted

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """The member that asks; without any field set, a program that assigns its own partitions, or an administrator.

    Attributes:
        generation: a classic group's generation; for the newer kinds the member's epoch.
    """

    member_id: str = ""
    group_instance_id: str | None = None
    generation: int = NO_GENERATION

    @property
    def is_given(self) -> bool:
        """Whether any field is set."""
        return self.generation >= 0 or self.member_id != "" or self.group_instance_id is not None


NOBODY = MemberIdentity()


def utf16_length(text: str) -> int:
    """Return the length that Java gives a string (``W-8``)."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def require_group_id(group_id: str | None, *, may_be_empty: bool) -> str:
    """Return the group id, or raise INVALID_GROUP_ID (``W-10``)."""
    if group_id is None or (group_id == "" and not may_be_empty):
        raise CoordinatorError(Errors.INVALID_GROUP_ID, "the group id is empty")
    return group_id


def validate_commit(
    group_id: str, group: Group | None, who: MemberIdentity, *, transactional: bool, is_java: bool
) -> None:
    """Raise unless ``who`` may commit (``W-7``); for an unknown group GROUP_ID_NOT_FOUND, as OffsetCommit 9."""
    if group is not None:
        COMMIT_RULES[group.kind](group, who, transactional)
    elif who.generation >= 0:
        is_told = is_java and not transactional
        raise CoordinatorError(
            Errors.GROUP_ID_NOT_FOUND if is_told else Errors.ILLEGAL_GENERATION, f"there is no group {group_id!r}"
        )


def _classic_commit(group: Group, who: MemberIdentity, transactional: bool) -> None:
    if who.generation < 0 and not group.members:
        return
    if who.is_given:
        _require_classic_member(group, who)
        if who.generation != group.generation:
            raise CoordinatorError(
                Errors.ILLEGAL_GENERATION, f"the group is in generation {group.generation}, not {who.generation}"
            )
    elif not transactional:
        raise CoordinatorError(Errors.UNKNOWN_MEMBER_ID, "the group has members; only they commit")


def _require_classic_member(group: Group, who: MemberIdentity) -> None:
    if who.group_instance_id is not None:
        holders = [
            member.member_id
            for member in group.members.values()
            if member.metadata.get("group_instance_id") == who.group_instance_id
        ]
        if holders and who.member_id not in holders:
            raise CoordinatorError(
                Errors.FENCED_INSTANCE_ID, f"{who.group_instance_id!r} is member {holders[0]!r}, not {who.member_id!r}"
            )
        if not holders:
            raise CoordinatorError(Errors.UNKNOWN_MEMBER_ID, f"there is no static member {who.group_instance_id!r}")
    if who.member_id not in group.members:
        raise CoordinatorError(Errors.UNKNOWN_MEMBER_ID, f"there is no member {who.member_id!r}")


def _newer_commit(group: Group, who: MemberIdentity, transactional: bool) -> None:
    if who.generation < 0 and not group.members:
        return
    if transactional and not who.is_given:
        return
    try:
        _require_newer_member(group, who.member_id, who.generation)
    except CoordinatorError as error:
        if transactional and error.error is Errors.STALE_MEMBER_EPOCH:
            raise CoordinatorError(Errors.ILLEGAL_GENERATION, error.problem) from None
        raise


def _require_newer_member(group: Group, member_id: str, member_epoch: int) -> None:
    member = group.members.get(member_id)
    if member is None:
        raise CoordinatorError(Errors.UNKNOWN_MEMBER_ID, f"there is no member {member_id!r}")
    if member_epoch != member.member_epoch:
        raise CoordinatorError(
            Errors.ILLEGAL_GENERATION if _joined_as_classic(member) else Errors.STALE_MEMBER_EPOCH,
            f"the member's epoch is {member.member_epoch}, not {member_epoch}",
        )


def _joined_as_classic(member: Member) -> bool:
    return member.metadata.get("classic_member_metadata") is not None


def _share_commit(group: Group, who: MemberIdentity, transactional: bool) -> None:
    raise CoordinatorError(Errors.GROUP_ID_NOT_FOUND, f"{group.group_id!r} is a share group")


COMMIT_RULES: dict[str, Callable[[Group, MemberIdentity, bool], None]] = {
    CLASSIC: _classic_commit,
    CONSUMER: _newer_commit,
    STREAMS: _newer_commit,
    SHARE: _share_commit,
}


def validate_fetch(group: Group, who: MemberIdentity) -> None:
    """Raise unless ``who`` may fetch; only the newer kinds check it, and only if a member is named."""
    if group.kind in (CONSUMER, STREAMS) and who.is_given:
        _require_newer_member(group, who.member_id, who.generation)


def validate_offset_delete(group: Group) -> Callable[[str], bool]:
    """Raise unless offsets may be deleted; return which topics the group subscribes to (``E-20``, ``E-12``)."""
    if group.kind == SHARE:
        raise CoordinatorError(Errors.GROUP_ID_NOT_FOUND, f"{group.group_id!r} is a share group")
    if group.kind == CLASSIC and not group.members:
        return lambda topic: False
    if group.kind == CLASSIC and group.protocol_type != "consumer":
        raise CoordinatorError(Errors.NON_EMPTY_GROUP, f"{group.group_id!r} has members that are no consumers")
    subscribed = subscribed_topics(group)
    return lambda topic: subscribed is None or topic in subscribed


def require_empty(group: Group) -> None:
    """Raise unless the group has no members (``E-19``)."""
    if group.members:
        raise CoordinatorError(
            Errors.NON_EMPTY_GROUP, f"{group.group_id!r} has {counted(len(group.members), 'member')}"
        )
