"""What is asked of a rescue, and which cluster is to get the offsets."""

from __future__ import annotations

from dataclasses import dataclass, field

from offsets_log.session.decide import DecideOptions
from offsets_log.session.scope import BrokerOptions


@dataclass(frozen=True, slots=True)
class TargetAsked:
    """Which cluster is judged: none, a copy, or a live one.

    Attributes:
        paths: a copy of it.
        bootstrap_server: its brokers, ``HOST:PORT`` with commas between them.
        command_config: a file of properties for the connection.
    """

    paths: tuple[str, ...] = ()
    bootstrap_server: str | None = None
    command_config: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RescueAsked:
    """What is asked of a rescue.

    Attributes:
        profile: whose rules to follow; None for what the files show.
        broker: whether the offsets are those of a broker which starts with these files.
        lag: whether offsets that point to no record are reported; None where the copy has the logs for it.
        target: the cluster that is to get the offsets.
    """

    profile: str | None = None
    broker: BrokerOptions = field(default_factory=BrokerOptions)
    decide: DecideOptions = field(default_factory=DecideOptions)
    lag: bool | None = None
    target: TargetAsked = field(default_factory=TargetAsked)
