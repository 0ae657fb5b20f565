"""Notes in the register where rules act, and writes `docs/rules.md`: ``python -m tools.rule_reference``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from offsets_log.rules import PARTS, Rule, rules
from tests.rule_register import PACKAGES, cited_ids, sources

REGISTER = Path(__file__).parent.parent / "offsets_log" / "rules" / "register.toml"
PAGE = Path(__file__).parent.parent / "docs" / "rules.md"
PREFACE = """\
# Rules

The rules of Kafka that this program follows. Rows (`"rule":"B-9"`), docstrings and tests cite them by their ids;
`offsets-log explain ID` prints the same text.

*Seen on a broker* includes runs of Kafka's own classes; *read in source* and *inferred* are what they say. Each rule
names the test that checks it, or says why no test with files can. `make docs` writes this file from
`offsets_log/rules/register.toml`.
"""


def reference() -> str:
    """The whole page."""
    parts = groupby(rules().values(), key=lambda rule: rule.part)
    return PREFACE + "".join(f"\n## {PARTS[part]}\n" + "".join(map(_section, found)) for part, found in parts)


def _section(rule: Rule) -> str:
    return f"\n### {rule.id}\n\n{rule.says}\n\n" + "".join(f"- {line}\n" for line in _lines(rule))


def _lines(rule: Rule) -> Iterator[str]:
    yield f"Holds for: {rule.holds_for}; {rule.releases}. {rule.sure.capitalize()}."
    if rule.means is not None and rule.do is not None:
        yield f"What it means: {rule.means}"
        yield f"What to do: {rule.do}"
    yield f"In Kafka: {', '.join((*(f'`{name}`' for name in rule.kafka), *rule.changes))}"
    if rule.acts_in:
        yield f"Here: {', '.join(f'`{path}`' for path in rule.acts_in)}"
    yield f"Tested by: `{rule.test}`" if rule.test is not None else f"No test: {rule.not_offline}"


def noted(register: str) -> str:
    """The register with ``acts_in`` as the modules are that cite each rule."""
    citing: dict[str, list[str]] = {}
    for name, text in sources(*PACKAGES):
        for id_ in cited_ids(text):
            citing.setdefault(id_, []).append(name)

    def table(match: re.Match[str]) -> str:
        acting = sorted(citing.get(match["id"].strip('"'), ()))
        paths = ", ".join(f'"{path}"' for path in acting)
        return re.sub(r"^acts_in = \[.*?\]$", f"acts_in = [{paths}]", match[0], count=1, flags=re.MULTILINE | re.DOTALL)

    return re.sub(r"^\[(?P<id>[^\]\n]+)\]\n.*?(?=^\[|\Z)", table, register, flags=re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    REGISTER.write_text(noted(REGISTER.read_text(encoding="utf-8")), encoding="utf-8")
    PAGE.write_text(reference(), encoding="utf-8")
