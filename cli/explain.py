"""``offsets-log explain``: a rule of Kafka by its id, a record type's layout by its number or name."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from shutil import get_terminal_size
from typing import IO, TYPE_CHECKING, Any

import click

from cli.options import Output, output_option

if TYPE_CHECKING:
    from offsets_log.messages.registry import RecordType
    from offsets_log.rows.tables import Row
    from offsets_log.rules import Rule

COLUMNS = (
    "kind", "id", "says", "holds_for", "releases", "means", "do", "sure", "kafka", "changes", "acts_in", "test",
    "not_offline", "record_type", "record", "part", "version", "flexible", "layout", "field", "type", "versions",
    "nullable", "tag", "default", "since",
)  # fmt: skip
RULE_COLUMNS = ("id", "holds_for", "says")
TYPE_COLUMNS = ("record_type", "record", "key", "value_versions")
FIELD_COLUMNS = ("field", "type", "nullable", "tag", "default", "versions", "since")
MOST_WIDTH, LEAST_WIDTH, MARGIN = 110, 40, 17
"""How wide paragraphs are: as wide as a terminal within these bounds."""


@click.command(
    "explain",
    epilog="Examples: offsets-log explain B-9 J-15 -o table · offsets-log explain offset-commit -o table · "
    "offsets-log explain -o jsonl",
)
@click.argument("names", metavar="[RULE|RECORD...]", nargs=-1)
@output_option("table", "jsonl", "json", "csv")
def command(output: Output, names: tuple[str, ...]) -> None:
    """Explain a rule that rows name, such as "rule":"B-9": what it says, what it means and what to do; or a record's
    layout.

    RECORD is the number of a record type or Kafka's name for it (2, group-metadata); its fields are shown version by
    version. Without arguments all rules and record types are listed.
    """
    from cli.output import chosen_format, destination, write_rows
    from cli.terminal import fail
    from offsets_log.errors import OffsetsLogError

    subjects = [_subject(name) for name in names] if names else list(_everything())
    format_name = chosen_format(output)
    try:
        with destination(output) as stream:
            if format_name != "table":
                write_rows(stream, (row for subject in subjects for row in subject.rows()), COLUMNS, format_name)
            elif names:
                stream.write("\n".join(subject.page() for subject in subjects).encode())
            else:
                _write_list(stream, subjects)
    except OffsetsLogError as error:
        fail(error)


@dataclass(frozen=True, slots=True)
class RuleSubject:
    """A rule that is explained."""

    rule: Rule

    def rows(self) -> Iterator[Row]:
        """Return the rule's facts."""
        yield {"kind": "rule", **asdict(self.rule), "kafka": list(self.rule.kafka), **self._lists()}

    def _lists(self) -> Row:
        return {"changes": list(self.rule.changes), "acts_in": list(self.rule.acts_in)}

    def page(self) -> str:
        """Return the rule's facts for a reader."""
        rule = self.rule
        lines = {
            rule.id: rule.says,
            "holds for": f"{rule.holds_for}: {rule.releases}",
            "what it means": rule.means,
            "what to do": rule.do,
            "how sure": rule.sure,
            "in Kafka": ", ".join((*rule.kafka, *rule.changes)),
            "here": ", ".join(rule.acts_in),
            "held by": rule.test,
            "no test": rule.not_offline,
        }
        return "".join(_paragraph(title, text) for title, text in lines.items() if text)


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

    def page(self) -> str:
        """Return the fields for a reader: a table each for the key and for the versions of the value."""
        from io import BytesIO

        from cli.output import write_rows

        text = BytesIO()
        text.write(f"Record type {self.record_type.number}, {self.record_type.name}\n".encode())
        for title, rows in groupby(self.rows(), _heading):
            text.write(f"\n{title}\n".encode())
            write_rows(text, rows, FIELD_COLUMNS, "table")
        return text.getvalue().decode()

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


def _paragraph(title: str, text: str) -> str:
    width = min(MOST_WIDTH, max(LEAST_WIDTH, get_terminal_size().columns)) if sys.stdout.isatty() else MOST_WIDTH
    first, others = title.ljust(MARGIN), " " * MARGIN
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=others, break_long_words=False) + "\n"


def _write_list(stream: IO[bytes], subjects: Sequence[Any]) -> None:
    from cli.output import write_rows

    rules: Iterable[Row] = (row for subject in subjects if isinstance(subject, RuleSubject) for row in subject.rows())
    write_rows(stream, rules, RULE_COLUMNS, "table")
    stream.write(b"\n")
    types = (subject.summary() for subject in subjects if isinstance(subject, RecordSubject))
    write_rows(stream, types, TYPE_COLUMNS, "table")


def _everything() -> Iterator[RuleSubject | RecordSubject]:
    from offsets_log.messages.registry import RECORD_TYPES
    from offsets_log.rules import rules

    yield from map(RuleSubject, rules().values())
    yield from map(RecordSubject, RECORD_TYPES.values())


def _subject(name: str) -> RuleSubject | RecordSubject:
    """Return what a name stands for; fail with similar names if it stands for nothing."""
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
    raise click.BadParameter(f"{name!r} is neither a rule nor a record type: {hint}", param_hint="RULE|RECORD")
