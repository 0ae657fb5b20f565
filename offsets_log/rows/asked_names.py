"""Names that are asked for by globs: which fit, which name a glob is itself, and how to ask for what was not meant."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator
from fnmatch import translate

SIGNS = "*?["
EVERY = "*"
"""Asks for all names, also where one is named so."""
_QUOTED = re.compile(r"\[([*?[])\]")


def literal(name: str) -> str:
    """Return a glob that only this name fits."""
    return "".join(f"[{sign}]" if sign in SIGNS else sign for sign in name)


def name_of(glob: str) -> str | None:
    """Return the name that alone fits a glob, whose signs are all quoted; None for other globs."""
    name = _QUOTED.sub(r"\1", glob)
    return name if literal(name) == glob else None


def _is_held(name: str) -> bool:
    return False


class AskedNames:
    """Tells whether a name fits one of the globs; without globs every name does.

    A glob that is itself a name that is held is meant as that name, alone. Where nobody can tell whether the name is
    held before names are met, it is met among those that fit the glob.

    Args:
        is_held: whether there is such a name; asked at once, and only for globs with signs that are not quoted.

    Attributes:
        globs: those given.
        idle: the globs that none of the names so far fits; not ``*``, which is to blame for nothing.
        taken: globs that are meant as names.
        met: globs that are names which were met among others that may fit.
    """

    def __init__(self, globs: tuple[str, ...], is_held: Callable[[str], bool] = _is_held) -> None:
        self.globs = tuple(dict.fromkeys(globs))
        self.idle = [glob for glob in self.globs if glob != EVERY]
        self.taken: list[str] = []
        self.met: list[str] = []
        self._near: dict[str, set[str]] = {}
        self._names: dict[str, str] = {}
        self._patterns: dict[str, re.Pattern[str]] = {}
        for glob in self.globs:
            name = name_of(glob)
            if name is None and glob != EVERY and is_held(glob):
                self.taken.append(glob)
                name = glob
            if name is None:
                self._patterns[glob] = re.compile(translate(glob))
            else:
                self._names.setdefault(name, glob)

    def __call__(self, name: str) -> bool:
        if self.idle:
            self._note(name)
        return not self.globs or name in self._names or self._fits(name)

    def fitting(self, name: str) -> list[str]:
        """Return the globs that a name fits."""
        self(name)
        return [glob for glob in self.globs if self._fits_one(name, glob)]

    @property
    def idle_names(self) -> list[str]:
        """The names that idle globs are."""
        return [name for name, glob in self._names.items() if glob in self.idle]

    def remarks(self, option: str, what: str = "group") -> Iterator[str]:
        """Yield a sentence for each glob that is a name, and for each idle name that others nearly are."""
        for glob in self.taken:
            yield (
                f"{option} {shlex.quote(glob)} is a {what}'s whole name, which is meant alone: "
                f"{option} {shlex.quote(_as_glob(glob))} is for all that fit"
            )
        for glob in self.met:
            yield (
                f"a {what} is named exactly {shlex.quote(glob)}, and is among those that fit: "
                f"{option} {shlex.quote(literal(glob))} is for it alone"
            )
        for name in self.idle_names:
            if near := sorted(self._near.get(_squeezed(name), ())):
                others = ", ".join(f"'{one}'" for one in near[:3]) + (" and others" if len(near) > 3 else "")
                yield f"no {what} is named '{name}', but for case and blanks: {others}"

    def _note(self, name: str) -> None:
        """Take note of what a name fits, or nearly is."""
        if found := [glob for glob in self.idle if self._fits_one(name, glob)]:
            self.idle = [glob for glob in self.idle if glob not in found]
        elif self._names:
            if not self._near:
                self._near = {_squeezed(asked): set() for asked in self._names}
            if (near := self._near.get(_squeezed(name))) is not None:
                near.add(name)

    def _fits(self, name: str) -> bool:
        if name in self._patterns and name != EVERY and name not in self.met:
            self.met.append(name)
        return any(pattern.match(name) for pattern in self._patterns.values())

    def _fits_one(self, name: str, glob: str) -> bool:
        pattern = self._patterns.get(glob)
        return self._names.get(name) == glob if pattern is None else pattern.match(name) is not None


def _as_glob(glob: str) -> str:
    """Return a glob that the same names fit, and that is no name: its first plain character is one of a choice."""
    for place, character in enumerate(glob):
        if character == "[":
            break
        if character not in SIGNS:
            return f"{glob[:place]}[{character}]{glob[place + 1 :]}"
    return f"{EVERY}{glob}" if glob.startswith(EVERY) else f"{glob}{EVERY}"


def _squeezed(name: str) -> str:
    """Return a name without what eyes do not see in it: case, blanks of all kinds, format characters."""
    if name.isascii():
        return "".join(name.split()).casefold()
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(sign for sign in folded if not sign.isspace() and unicodedata.category(sign) != "Cf")


def idle_options(option: str, shows: AskedNames) -> list[str]:
    """Return the option with each of its globs that no name fitted, as they may be given."""
    return [f"{option} {shlex.quote(glob)}" for glob in shows.idle]
