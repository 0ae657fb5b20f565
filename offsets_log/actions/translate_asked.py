"""What is asked of a translation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TranslateAsked:
    """What is asked of a translation.

    Attributes:
        target: a copy of the other cluster; empty without one.
        bootstrap_server: brokers of the other cluster instead, which are only asked.
        command_config: a file of properties for that connection.
        map: a file with pairs of offsets.
        offset_header: ``NAME[:le|be|text]``, the header that has a record's offset in the source.
        policy: ``identity``, or ``default:ALIAS``.
        rename, rename_group: ``OLD=NEW`` or ``s/PATTERN/NEW/``, the first that fits counts.
        leader_epochs: ``drop``, or ``target`` for those of the target's log.
        allow_skip: whether an uncertain place becomes the first record that certainly is unread.
    """

    target: tuple[str, ...] = ()
    bootstrap_server: str | None = None
    command_config: str | None = None
    map: str | None = None
    offset_header: str | None = None
    policy: str = "identity"
    rename: tuple[str, ...] = ()
    rename_group: tuple[str, ...] = ()
    leader_epochs: str = "drop"
    allow_skip: bool = False
