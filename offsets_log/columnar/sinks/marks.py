"""Values that stand for others in a line, which is cut at them."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands in a line of marks for a value, and the operation that writes that value.

    Attributes:
        element: 0 or 1 in the elements of an array, which has two; None elsewhere.
    """

    text: bytes
    op: int
    argument: int = 0
    element: int | None = None


class Values:
    """Values that stand for others.

    Attributes:
        made: what stands for them in a line.
    """

    def __init__(self) -> None:
        self.made: list[Mark] = []
        self._element: int | None = None

    def number(self, op: int, argument: int = 0) -> int:
        """A number in place of what an operation writes."""
        number = 10**29 + secrets.randbelow(10**29)
        self.made.append(Mark(str(number).encode(), op, argument, self._element))
        return number

    def text(self, op: int, argument: int = 0) -> str:
        """A text in place of what an operation writes."""
        text = f"mark{10**29 + secrets.randbelow(10**29)}"
        self.made.append(Mark(text.encode(), op, argument, self._element))
        return text


def split(line: bytes, values: Values) -> tuple[list[bytes], list[Mark]]:
    """What stands between the marks of a line, and the marks."""
    by_text = {mark.text: mark for mark in values.made}
    pieces = re.split(b"(" + b"|".join(map(re.escape, by_text)) + b")", line)
    return pieces[::2], [by_text[text] for text in pieces[1::2]]
