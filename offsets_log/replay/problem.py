"""Describe why a coordinator would not load a partition: a fact about a log, not about how we read it."""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.release_names import rules_in_words

NOT_LOADED, SERVED = "would not load it", "logs an error once it has loaded it, and serves it"


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that ends a load.

    Attributes:
        record_offset: offset of the record, or the log's end offset where only the end shows the problem (``L-39``).
        rule: the rule that refuses it, such as ``J-17``.
        group: the group concerned, if any.
        is_served: whether the partition is served all the same (``B-4``).
    """

    record_offset: int
    rule: str
    problem: str
    group: str | None = None
    is_served: bool = False

    def in_words(self, profile_name: str, offsets_partition: str) -> str:
        """Return a sentence for people."""
        what = SERVED if self.is_served else NOT_LOADED
        return (
            f"offsets partition {offsets_partition}: a coordinator of {rules_in_words(profile_name)} {what}: "
            f"record offset {self.record_offset}, {self.rule}: {self.problem}"
        )
