"""What is asked of a run that follows logs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FollowAsked:
    """What is asked of a run that follows logs.

    Attributes:
        follow: whether the logs are followed at all.
        until_idle: ms without anything new that end it; None to go on until a signal.
        alert: rules, each with its duration in ms or its number of records, 0 of one that takes none.
        metrics_port: where to serve metrics: host and port.
    """

    follow: bool = True
    until_idle: int | None = None
    alert: tuple[tuple[str, int], ...] = ()
    metrics_port: tuple[str, int] | None = None

    @property
    def rules(self) -> dict[str, int]:
        """Rule → its duration in ms, or its number of records."""
        return dict(self.alert)

    @property
    def wants_ends(self) -> bool:
        """Whether the ends of users' partitions are needed."""
        return self.metrics_port is not None or bool(self.rules_of_ends)

    @property
    def rules_of_ends(self) -> list[str]:
        """The rules that the ends of users' partitions decide."""
        return [rule for rule in self.rules if rule in ("beyond-end", "lag")]
