"""``offsets-log where``: the offsets partition of a group, and the groups of an offsets partition."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offsets_log_cli.help_page import CHOOSE, RARE, Command, option
from offsets_log_cli.options import QUIET, Output, ReadOptions, gather, output_option, release_options

if TYPE_CHECKING:
    from offsets_log.investigate.where import Question
    from offsets_log.rows.tables import Column, Row

DEFAULT_PARTITIONS = 50
"""Stated here too, so that help loads nothing; a test compares them."""


@dataclass(frozen=True, kw_only=True)
class KeyOptions:
    """The keys of messages, and the topic they are sent to."""

    keys: tuple[str, ...]
    topic_partitions: int | None
    partitioner: str


@click.command(
    "where",
    cls=Command,
    epilog="Examples: offsets-log where billing audit --partitions 50 · "
    "offsets-log where billing /var/lib/kafka/data · "
    "printf 'billing\\naudit\\n' | offsets-log where - · offsets-log where --of /var/lib/kafka/data",
)
@click.argument("groups", metavar="[GROUP...] [PATH]", nargs=-1)
@option(
    "--partitions",
    under=CHOOSE,
    formerly=("--offsets-topic-partitions",),
    metavar="N",
    type=click.IntRange(min=1),
    help="How many partitions __consumer_offsets has. By default what PATH shows, by the cluster's metadata, the "
    f"checkpoints or the groups in it, else {DEFAULT_PARTITIONS}, which is then said.",
)
@option(
    "--of",
    under=CHOOSE,
    metavar="DIR",
    multiple=True,
    help="List the groups that are lost with this directory. That of a broker, or of a partition; repeatable.",
)
@gather(
    "sent",
    KeyOptions,
    (
        option(
            "--key",
            "keys",
            under=CHOOSE,
            metavar="K",
            multiple=True,
            help="Show a message's partition, by its key; repeatable.",
        ),
        option(
            "--topic-partitions",
            under=CHOOSE,
            metavar="N",
            type=click.IntRange(min=1),
            help=f"How many partitions that topic has. By default {DEFAULT_PARTITIONS}, which is then said.",
        ),
        option(
            "--partitioner",
            under=RARE,
            type=click.Choice(["murmur2"]),
            default="murmur2",
            show_default=True,
            help="How producers place keys; murmur2 is Kafka's own.",
        ),
    ),
)
@option(
    "--input-format",
    under=RARE,
    type=click.Choice(["jsonl"]),
    help='Form of the lines that - reads: {"group", "partitions"}; without it, one group per line.',
)
@release_options
@output_option("table", "jsonl", "json", "csv")
@QUIET
def command(
    output: Output,
    groups: tuple[str, ...],
    partitions: int | None,
    of: tuple[str, ...],
    sent: KeyOptions,
    input_format: str | None,
    profile: str | None,
    quiet: bool,
) -> None:
    """Show which partition of __consumer_offsets a group belongs to; with --of, which groups belong to a partition.

    With - in place of GROUP, group names are read from standard input, one per line, split at line feeds only: nothing
    is stripped, and an empty line is the empty group. The answers keep this order. PATH, an existing one with a / in
    it, is a copy that shows how many partitions there are.

    --of lists the groups in these partitions, and what each would lose with them. GROUP chooses some of them. If other
    replicas are in sync, losing one broker loses nothing. If a group is not here, standard error says whether its
    partition is missing from this copy.

    --key shows to which partition a producer sends a message with that key, in a topic with --topic-partitions N.
    """
    from offsets_log.errors import OffsetsLogError
    from offsets_log.investigate.where import KEY_COLUMNS, WHERE_COLUMNS
    from offsets_log.questions.homes_of import homes_of, homes_of_keys
    from offsets_log_cli.terminal import Terminal, fail

    if sent.keys and (groups or of):
        raise click.UsageError("--key asks for a topic's partition: give no group and no --of beside it")
    copies = () if of else tuple(path for path in groups if os.sep in path and Path(path).exists())
    groups = tuple(group for group in groups if group not in copies)
    if not groups and not of and not sent.keys:
        raise click.UsageError("give groups, - to read them from standard input, --of DIR or --key K")
    if sent.topic_partitions is not None and not sent.keys:
        raise click.UsageError("--topic-partitions is of the topic of --key; --partitions is of __consumer_offsets")
    say = Terminal(is_quiet=quiet).say
    try:
        if sent.keys:  # --partitions N is the older spelling
            count = sent.topic_partitions or partitions
            _write(homes_of_keys(map(os.fsencode, sent.keys), count, say), KEY_COLUMNS, output)
            return
        asked = _questions(groups, partitions, input_format)
        if of:
            reading = ReadOptions(paths=of, partitions=partitions, quiet=quiet)
            _check_order(of, groups)
            only = {group for group, _ in asked} if groups else None
            _write_of(reading, output, only, profile)
            return
        if copies:
            _write_by_copy(ReadOptions(paths=copies, partitions=partitions, quiet=quiet), asked, output)
            return
        _write(homes_of(asked, say), WHERE_COLUMNS, output)
    except OffsetsLogError as error:
        fail(error)


def _check_order(of: tuple[str, ...], groups: tuple[str, ...]) -> None:
    """Raise an InputError if --of names nothing and a group is a directory: they changed places."""
    from offsets_log.disk.urls import is_url
    from offsets_log.errors import InputError

    absent = next((path for path in of if not is_url(path) and not os.path.lexists(path)), None)
    directory = next((group for group in groups if Path(group).is_dir()), None)
    if absent is not None and directory is not None:
        raise InputError(
            f"no such file or directory. --of takes the directory: offsets-log where --of {shlex.quote(directory)} "
            f"{shlex.quote(absent)}",
            file=absent,
        )


def _write(rows: Iterable[Row], columns: Sequence[Column], output: Output, inputs: Sequence[str] = ()) -> None:
    from offsets_log_cli.output import destination, write_rows

    with destination(output, inputs) as stream:
        write_rows(stream, rows, [column.name for column in columns], output)


def _write_by_copy(reading: ReadOptions, asked: Iterator[Question], output: Output) -> None:
    """Write the partitions of groups by as many partitions as a copy shows."""
    from offsets_log.investigate.where import WHERE_COLUMNS
    from offsets_log.questions.homes_of import counted_by, homes_of
    from offsets_log_cli.session import open_session

    with open_session(reading, output) as session:
        rows = homes_of(counted_by(session, asked), session.account.say)
        _write(rows, WHERE_COLUMNS, output, session.inputs.files)


def _questions(groups: tuple[str, ...], partitions: int | None, input_format: str | None) -> Iterator[Question]:
    from offsets_log.investigate.where import read_json_lines, read_lines
    from offsets_log.log_format.java_text import decode_string

    for group in groups:
        if group != "-":
            yield decode_string(os.fsencode(group)), partitions
        elif input_format is None:
            yield from read_lines(sys.stdin.buffer, partitions)
        else:
            yield from read_json_lines(sys.stdin.buffer, partitions, "-")


def _write_of(reading: ReadOptions, output: Output, only: set[str] | None, profile: str | None) -> None:
    """Write the groups that the partitions hold."""
    from offsets_log.questions.held_groups import HeldGroups
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session

    with open_session(reading, output) as session:
        write_answer(session, output, HeldGroups(session, profile, only))
