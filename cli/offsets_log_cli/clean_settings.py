"""Settings of the topic and the broker that decide a round of cleaning: ``--config segment.bytes=1048576``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from offsets_log_cli.help_page import RULES, option
from offsets_log_cli.options import HARDLY_MS, Duration


class Minutes(Duration):
    """As `Duration`, but a number alone is minutes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the value in milliseconds."""
        text = str(value).strip()
        return super().convert(f"{text}m" if text.isdecimal() else text, param, ctx)


class Share(click.ParamType):  # type: ignore[type-arg]
    """``0.9`` → 90, in percent."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the value; fail for anything but hundredths up to 1."""
        share = click.FLOAT.convert(value, param, ctx) * 100
        if not (1 <= share <= 100 and abs(share - round(share)) < 1e-9):
            self.fail(f"{value!r} is no share from 0.01 to 1, in hundredths", param, ctx)
        return round(share)


class Setting(NamedTuple):
    """A setting.

    Attributes:
        variable: the parameter of the command that has it.
        type: what its values are.
        default: Kafka's, for people.
        option: the name of an option of its own, which goes on.
        option_type: what that option's values are, if they are others.
    """

    variable: str
    type: click.ParamType  # type: ignore[type-arg]
    default: str
    option: str
    option_type: click.ParamType | None = None  # type: ignore[type-arg]


BYTES = click.IntRange(min=1)
SETTINGS = {
    "delete.retention.ms": Setting("delete_retention_ms", Duration(), "1d", "--delete-retention"),
    "min.compaction.lag.ms": Setting("min_compaction_lag_ms", Duration(), "0", "--min-compaction-lag"),
    "segment.bytes": Setting("segment_bytes", BYTES, "100 MiB", "--segment-bytes"),
    "segment.index.bytes": Setting("segment_index_bytes", BYTES, "10 MiB", "--segment-index-bytes"),
    "index.interval.bytes": Setting("index_interval_bytes", click.IntRange(min=0), "4096", "--index-interval-bytes"),
    "max.message.bytes": Setting("max_message_bytes", BYTES, "1048588", "--max-message-bytes"),
    "message.max.bytes": Setting("cleaner_max_message_bytes", BYTES, "1048588", "--cleaner-max-message-bytes"),
    "producer.id.expiration.ms": Setting("producer_id_expiration_ms", Duration(), "1d", "--producer-id-expiration"),
    "log.cleaner.io.buffer.size": Setting("io_buffer_bytes", BYTES, "512 KiB", "--io-buffer-bytes"),
    "log.cleaner.dedupe.buffer.size": Setting("dedupe_buffer_bytes", BYTES, "no limit", "--dedupe-buffer-bytes"),
    "log.cleaner.io.buffer.load.factor": Setting(
        "load_factor_percent", Share(), "0.9", "--load-factor-percent", click.IntRange(1, 100)
    ),
    "offsets.retention.minutes": Setting(
        "retention", Minutes(), "the release's", "--retention", Duration(HARDLY_MS)
    ),
}  # fmt: skip
"""Kafka's name → the setting."""


class Config(click.ParamType):  # type: ignore[type-arg]
    """``segment.bytes=1048576`` → (the command's parameter, its value)."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Return the value; fail for a setting that decides nothing here, and for a value that Kafka does not take."""
        name, equals, text = str(value).partition("=")
        setting = SETTINGS.get(name.strip())
        if setting is None or not equals:
            from difflib import get_close_matches

            near = ", ".join(get_close_matches(name, SETTINGS, n=1)) or ", ".join(SETTINGS)
            self.fail(f"{value!r} is no NAME=VALUE of a setting that decides a round, such as {near}", param, ctx)
        return setting.variable, setting.type.convert(text.strip(), param, ctx)


CONFIG = option(
    "--config",
    under=RULES,
    type=Config(),
    multiple=True,
    help="A setting of the topic or broker; repeatable. By Kafka's name, such as delete.retention.ms=1h; the buffers "
    f"are those of one thread. Defaults: {', '.join(f'{name} {one.default}' for name, one in SETTINGS.items())}.",
)


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--config``, and the options that each setting has had."""
    for setting in SETTINGS.values():
        kind = setting.option_type or setting.type
        command = click.option(setting.option, setting.variable, type=kind, hidden=True)(command)
    return CONFIG(command)


def with_config(given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a command with what ``--config`` says in their places.

    Raises:
        UsageError: two options say the same.
    """
    values = dict(given)
    for variable, value in values.pop("config"):
        if values[variable] is not None:
            name = next(name for name, setting in SETTINGS.items() if setting.variable == variable)
            raise click.UsageError(f"{name} is given twice")
        values[variable] = value
    return values
