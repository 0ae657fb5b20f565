"""Rules of Kafka and layouts of records, explained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from offsets_log.errors import AskedError

if TYPE_CHECKING:
    from offsets_log.messages.registry import RecordType
    from offsets_log.rows.tables import Row
    from offsets_log.rules import Rule

COLUMNS = (
    "kind", "id", "says", "holds_for", "releases", "means", "do", "sure", "kafka", "changes", "acts_in", "test",
    "not_offline", "record_type", "record", "part", "version", "flexible", "layout", "field", "type", "versions",
    "nullable", "tag", "default", "since",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuleSubject:
    """A rule that is explained."""

    rule: Rule

    def rows(self) -> Iterator[Row]:
        """Return the rule's facts."""
        yield {"kind": "rule", **asdict(self.rule), "kafka": list(self.rule.kafka), **self._lists()}

    def _lists(self) -> Row:
        return {"changes": list(self.rule.changes), "acts_in": list(self.rule.acts_in)}

    def paragraphs(self, *, with_sources: bool = False) -> dict[str, str]:
        """Return the rule's facts for a reader, by their titles.

        Args:
            with_sources: whether it is told where the rule stands in Kafka and in this program.
        """
        rule = self.rule
        sources = {
            "in Kafka": ", ".join((*rule.kafka, *rule.changes)),
            "here": ", ".join(rule.acts_in),
            "tested by": rule.test,
            "no test": rule.not_offline,
        }
        lines = {
            rule.id: rule.says,
            "holds for": f"{rule.holds_for}: {rule.releases}",
            "what it means": rule.means,
            "what to do": rule.do,
            "how sure": rule.sure,
            **(sources if with_sources else {}),
        }
        return {title: text for title, text in lines.items() if text}


@dataclass(frozen=True, slots=True)
class RecordSubject:
    """A record type whose layout is explained."""

    record_type: RecordType

    def rows(self) -> Iterator[Row]:
        """Return the fields of its key, and of every version of its value."""
        from offsets_log.messages.layouts import field_rows

        for row in field_rows(self.record_type):
            yield {
                "kind": "field",
                "record_type": self.record_type.number,
                "record": self.record_type.name,
                **asdict(row),
            }

    @property
    def title(self) -> str:
        """What it is, in a line."""
        return f"Record type {self.record_type.number}, {self.record_type.name}"

    def sections(self) -> Iterator[tuple[str, Iterator[Row]]]:
        """Yield the key and the versions of the value, each with its fields."""
        return groupby(self.rows(), _heading)

    def summary(self) -> Row:
        """Return its row in the list of all record types."""
        from offsets_log.messages.layouts import versions_of

        versions = sorted({version for layout in self.record_type.values for version in versions_of(layout)})
        return {
            "record_type": self.record_type.number,
            "record": self.record_type.name,
            "key": ", ".join(field.name for field in self.record_type.key.fields),
            "value_versions": ", ".join(map(str, versions)),
        }


def _heading(row: Row) -> str:
    if row["part"] == "key":
        return f"key: int16 {row['record_type']}, then"
    flexible = ", flexible: compact lengths, tagged fields after every struct" if row["flexible"] else ""
    written = f", by Kafka {row['releases']}" if row["releases"] else ""
    return f"value: int16 {row['version']}, then{written}{flexible}"


def everything() -> Iterator[RuleSubject | RecordSubject]:
    """Yield all rules, and all record types."""
    from offsets_log.messages.registry import RECORD_TYPES
    from offsets_log.rules import rules

    yield from map(RuleSubject, rules().values())
    yield from map(RecordSubject, RECORD_TYPES.values())


def subject(name: str) -> RuleSubject | RecordSubject:
    """Return what a name stands for. Raises AskedError, with names that are near, if it stands for nothing."""
    from offsets_log.messages.layouts import like, record_type
    from offsets_log.rules import PARTS, find, near

    if (rule := find(name)) is not None:
        return RuleSubject(rule)
    if (row := record_type(name)) is not None:
        return RecordSubject(row)
    found = [*near(name), *like(name)]
    hint = (
        f"near it are {', '.join(found)}"
        if found
        else f"rules begin with {', '.join(PARTS)}; offsets-log explain lists all"
    )
    raise AskedError(f"{name!r} is neither a rule nor a record type: {hint}")
