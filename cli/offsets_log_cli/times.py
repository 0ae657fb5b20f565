"""Times that depend on where the logs end, of all options of a command: looked up once, before it runs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from offsets_log.asked_time import OfLog

STDIN = "-"


def with_times(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command to which times that the logs' end decides come as epoch milliseconds; which, is said."""

    @functools.wraps(function)
    def timed(**values: Any) -> Any:
        asked = [one for value in values.values() for one in _each(value) if isinstance(one, OfLog)]
        if asked:
            end_ms = _end_of(values, asked[0])
            if not values.get("quiet"):
                from offsets_log_cli.terminal import say

                for words in dict.fromkeys(one.in_words(end_ms) for one in asked):
                    say(words)
            values = {name: _settled(value, end_ms) for name, value in values.items()}
        return function(**values)

    return timed


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _settled(value: Any, end_ms: int) -> Any:
    """Return the value of an option in which no time depends on the logs any more."""
    if isinstance(value, tuple):
        return tuple(_settled(one, end_ms) for one in value)
    return value.at(end_ms) if isinstance(value, OfLog) else value


def _end_of(values: Mapping[str, Any], asked: OfLog) -> int:
    """Return the time of the newest record of the logs that the options name, in epoch milliseconds."""
    from offsets_log.disk.reader import open_logs
    from offsets_log.errors import OffsetsLogError
    from offsets_log.serving.log_reader import times_of
    from offsets_log_cli.terminal import fail

    if STDIN in values["paths"]:
        raise click.UsageError(f"{asked.text} depends on where the log ends: give files, not standard input")
    how = {name: values[name] for name in ("as_partition", "input_format") if name in values}
    try:
        with open_logs(values["paths"], partitions=values.get("offsets_partition", ()), **how) as opened:
            lacks_time = any("timestamp_ms" in log.missing_columns for log in opened.logs)
            times = None if lacks_time else times_of(opened.logs, int(time.time() * 1000))
    except OffsetsLogError as error:
        fail(error)
    if times is None:
        raise click.UsageError(f"{asked.text} depends on where the log ends, and nothing here tells that time")
    return times[1]
