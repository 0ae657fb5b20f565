"""The order in which people need the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Needed(NamedTuple):
    """Names of columns in the order of need; those that are in neither follow as they stand.

    Attributes:
        always: without these a row says nothing: rather names are cut short.
        then: these are shown if names need not be.
    """

    always: Sequence[str] = ()
    then: Sequence[str] = ()
