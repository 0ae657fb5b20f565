"""How a copy is to be served."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServeAsked:
    """How the copy is served.

    Attributes:
        at: moments, each on a port of its own; the state at the end of the logs without any.
        end_offsets: a key of `serving.topics.END_OFFSETS`.
        now: the moment by which offsets have expired; None where nothing has.
        retention: how long offsets are kept, in ms; None for the default of the profile's releases.
        step: how many seconds of the log pass in one; None for a moment that stays.
    """

    at: tuple[int, ...]
    listen: tuple[str, int]
    advertise: tuple[str, int] | None
    end_offsets: str
    step: float | None
    now: int | None
    retention: int | None
