"""The help of a command on one screen: what it answers, its options under headings, examples; all of it on request.

The screen has the first paragraph of a command's help and the first sentence of each option's, so these are short.
``offsets-log help COMMAND`` and `docs/commands.md` have the rest.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Sequence
from copy import copy
from typing import Any

import click

CHOOSE, CLUSTER, CHANGE = "Choose", "Which cluster", "What is changed"
SHOW, RULES, ALERTS, OUTPUT = "Show", "By whose rules", "Alerts", "Output"
READING, RARE = "Of reading files, rarely needed", "Rarely needed"
"""The headings; options under the last two are only named on the screen."""
HEADINGS = (CHOOSE, CLUSTER, CHANGE, SHOW, RULES, ALERTS, OUTPUT)
WHOLE = "offsets_log_cli.whole"
"""Stands in the `meta` of a context in which all of the help is asked for."""
NAMES_WIDTH = 29
"""How wide the names of options may be to have what they do beside them."""
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z0-9`-])")

textwrap.TextWrapper.wordsep_re = textwrap.TextWrapper.wordsep_simple_re
"""Help, which click wraps by this class, is not broken at hyphens: options and commands in it can be copied."""


BETWEEN = " · "
"""Stands between examples."""


class Option(click.Option):
    """An option under a heading.

    Args:
        under: one of `HEADINGS`, `READING` or `RARE`.
        formerly: names that it goes on to have, and that are not shown.
    """

    def __init__(self, names: Sequence[str], *, under: str = RARE, formerly: Sequence[str] = (), **how: Any) -> None:
        super().__init__([*names, *formerly], **how)
        self.under, self.formerly = under, formerly

    @property
    def shown_names(self) -> list[str]:
        """The names that are shown."""
        return [name for name in self.opts if name not in self.formerly]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return its names and what it does, in a sentence unless the whole is asked for."""
        shown = copy(self)
        shown.opts = self.shown_names
        shown.help = self.help if WHOLE in ctx.meta else SENTENCE_END.split(self.help or "")[0]
        return super(Option, shown).get_help_record(ctx)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return defaults and what is required; bounds of numbers are told where they are passed."""
        return {name: told for name, told in super().get_help_extra(ctx).items() if name != "range"}


def option(*names: str, under: str, **how: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that adds an `Option`."""
    return click.option(*names, cls=Option, under=under, **how)


class Command(click.Command):
    """A command whose help fits a screen.

    Args:
        hides: names of shared options that have no effect here, or are not for people.
    """

    def __init__(self, *arguments: Any, hides: Collection[str] = (), **how: Any) -> None:
        super().__init__(*arguments, **how)
        for param in self.params:
            if isinstance(param, click.Option) and param.name in hides:
                param.hidden = True

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what it answers."""
        paragraphs = inspect.cleandoc(self.help or "").split("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(paragraphs if WHOLE in ctx.meta else paragraphs[:1]))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, and the names of rare ones."""
        is_whole = WHOLE in ctx.meta
        under: dict[str, list[tuple[Option, tuple[str, str]]]] = {}
        for param in self.params:
            if isinstance(param, Option) and (record := param.get_help_record(ctx)) is not None:
                under.setdefault(param.under, []).append((param, record))
        headings = [one for one in (*HEADINGS, *((READING, RARE) if is_whole else ())) if one in under]
        lengths = [len(names) for one in headings for _, (names, _) in under[one]]
        width = max((length for length in lengths if length <= NAMES_WIDTH), default=0)
        for heading in headings:
            with formatter.section(heading):
                formatter.write_dl([(names.ljust(width), said) for _, (names, said) in under[heading]])
        pages = {READING: "reading", RARE: ctx.command_path.partition(" ")[2]}
        rare = {heading: page for heading, page in pages.items() if heading in under and not is_whole}
        formatter.write("\n" if rare else "")
        for heading, page in rare.items():
            names = ", ".join(max(param.shown_names, key=len) for param, _ in under[heading])
            formatter.write_text(f"Rarely needed (offsets-log help {page}): {names}")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.epilog:
            write_examples(self.epilog, formatter)


def write_examples(epilog: str, formatter: click.HelpFormatter) -> None:
    """Write each example on a line of its own, so that it can be copied.

    Args:
        epilog: ``Examples:``, and examples with `BETWEEN` between them.
    """
    title, _, examples = epilog.partition(": ")
    with formatter.section(title):
        formatter.write("".join(f"  {example}\n" for example in examples.split(BETWEEN)))


def whole_help(command: click.Command, ctx: click.Context) -> str:
    """Return all that there is to say of a command.

    Args:
        ctx: the one in which the command would run.
    """
    ctx.meta[WHOLE] = True
    return command.get_help(ctx)
