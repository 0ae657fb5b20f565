"""Which records a question with ``-g`` and ``-t`` is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from offsets_log.rows.tables import Row


@dataclass(frozen=True, slots=True)
class Shown:
    """Which rows are asked for: records of these groups, and offset commits of these topics; None for all."""

    group: Callable[[str], bool] | None = None
    topic: Callable[[str], bool] | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.group is None and self.topic is None

    def shows_group(self, name: str) -> bool:
        """Return whether records of this group are asked for."""
        return self.group is None or self.group(name)

    def shows_topic(self, name: str) -> bool:
        """Return whether offset commits of this topic are asked for."""
        return self.topic is None or self.topic(name)

    def shows_key(self, group: str, topic: str | None) -> bool:
        """Return whether records of a group, and of a topic for offset commits, are asked for."""
        return self.shows_group(group) and (self.topic is None or (topic is not None and self.topic(topic)))

    def shows(self, row: Row) -> bool:
        """Return whether a row is asked for: of one without a group, such as a marker's, nobody asks."""
        group = row.get("group")
        return self.is_all or (group is not None and self.shows_key(group, row.get("topic")))


ALL = Shown()
