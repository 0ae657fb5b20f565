"""The code of classes as javap tells it, member by member, so that equal code is equal text.

What a compiler numbers again when anything else in the class changes is taken out: constants, offsets of instructions,
lambdas. So are packages: a class that moved is the same class to those that use it.
"""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator

from tools.release_drift.jars import Jars
from tools.release_drift.java import run_tool

Members = dict[str, str]
"""Signature of a member, with its inner class before it → its code."""

_CLASS = re.compile(r"^(?:\S.*? )?(?:class|interface) ([\w.$]+)")
_MEMBER = re.compile(r"^  (\S.*?)\s*[;{]?$")
_INSTRUCTION = re.compile(r"^\s+(\d+): ([a-z]\w*)\s*(.*)$")
_CASE = re.compile(r"^\s+(-?\d+|default): (\d+)$")
_HANDLER = re.compile(r"^\s+(\d+)\s+(\d+)\s+(\d+)\s+(.*)$")
_CONSTANT = re.compile(r"#\d+(?:,\s*\d+)?")
_PACKAGE = re.compile(r"\b(?:\w+[./])+(?=[A-Z])")
_NUMBERED = re.compile(r"((?:lambda|\$anonfun)\$\w+?)\$\d+")
_IN_WORDS = "_DOC"
"""Constants that describe a setting to people."""
_WIDE = {"ldc_w": "ldc", "goto_w": "goto"}


def code_of(jars: Jars, names: Iterable[str]) -> dict[str, Members]:
    """Return class → its members' code, of classes that the jars have. Raises NotAvailableError without javap."""
    wanted = {name.replace(".", "/"): name for name in names}
    if not wanted:
        return {}
    with tempfile.TemporaryDirectory() as work:
        files = []
        for path in jars.kafkas:
            with zipfile.ZipFile(path) as jar:
                files += [
                    jar.extract(entry, work)
                    for entry in jar.namelist()
                    if entry.endswith(".class") and entry.removesuffix(".class").partition("$")[0] in wanted
                ]
        shown = run_tool("javap", "-p", "-c", "-constants", *sorted(files))
    found: dict[str, Members] = {name: {} for name in wanted.values()}
    for name, member, code in _members(shown.splitlines()):
        members = found[name.partition("$")[0]]
        key = _plain(f"{name.partition('$')[2]} {member}".strip())
        if not key.endswith(_IN_WORDS):
            members[key] = members.get(key, "") + code
    return found


def _members(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield class, member and its code; the declaration of a class counts as a member."""
    name = member = ""
    code: list[str] = []
    for line in (*lines, "}"):
        started = _MEMBER.match(line)
        if member and (started is not None or line[:1] == "}"):
            yield name, member, _normal(code)
            member, code = "", []
        if started is not None:
            member = started[1].partition(" = ")[0]
            code = [started[1]]
        elif (head := _CLASS.match(line)) is not None:
            name = head[1]
            yield name, "declaration of the class", _plain(line)
        else:
            code.append(line)


def _normal(code: list[str]) -> str:
    places = [match[1] for line in code if (match := _INSTRUCTION.match(line)) is not None]
    numbers = {place: str(number) for number, place in enumerate(places)}
    return _plain("\n".join(_without_offsets(line, numbers) for line in code))


def _without_offsets(line: str, numbers: dict[str, str]) -> str:
    if (instruction := _INSTRUCTION.match(line)) is not None:
        name = _WIDE.get(instruction[2], instruction[2])
        rest = numbers.get(instruction[3], "") if name.startswith(("if", "goto", "jsr")) else instruction[3]
        return f"{name} {' '.join(_CONSTANT.sub('', rest).split())}"
    if (case := _CASE.match(line)) is not None:
        return f"{case[1]}: {numbers.get(case[2], 'end')}"
    if (handler := _HANDLER.match(line)) is not None:
        return " ".join((*(numbers.get(handler[part], "end") for part in (1, 2, 3)), handler[4]))
    return line.strip()


def _plain(text: str) -> str:
    return _NUMBERED.sub(r"\1", _PACKAGE.sub("", text))
