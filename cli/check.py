"""``offsets-log check``: would these partitions load, and what else is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.options import Output, Reading, Time, output_option, reading_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from offsets_log.checking import Load
    from offsets_log.replay.releases import Release
    from offsets_log.tables import Row

FINDINGS_COLUMNS = (
    "severity", "offsets_partition", "record_offset", "group", "rule", "releases", "problem", "file", "position",
)  # fmt: skip


class Releases(click.ParamType):  # type: ignore[type-arg]
    """``3.9.1,4.3.0`` → the releases."""

    name = "X.Y,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Release, ...]:
        """Fails for a release whose rules are not known."""
        from offsets_log.replay.releases import release_named

        try:
            return tuple(release_named(name.strip()) for name in str(value).split(","))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(
    "check",
    epilog="Examples: offsets-log check /var/lib/kafka/data --loads-on 3.9.1,4.3.0 · "
    "offsets-log check backup.tar.gz -o json",
)
@reading_options
@click.option(
    "--loads-on",
    type=Releases(),
    multiple=True,
    help="Releases to try, such as 3.9.1,4.3.0; -java is the preview of the Java coordinator in 3.7 to 3.9. "
    "By default one for each set of rules that is known; repeatable.",
)
@click.option(
    "--partitions",
    metavar="N",
    type=click.IntRange(min=1),
    help="How many partitions __consumer_offsets has; by default 50, or what the groups found show.",
)
@click.option("--now", type=Time(), help="Until when open transactions are old; by default the newest record read.")
@output_option("table", "jsonl", "json", "csv")
def command(
    reading: Reading,
    output: Output,
    loads_on: tuple[tuple[Release, ...], ...],
    partitions: int | None,
    now: int | None,
) -> None:
    """Would these partitions load on Kafka X.Y, and what else is wrong with them?

    A dry run of the load on each release: which record ends it, by which rule, and what would be skipped. Also damage,
    torn tails, gaps and overlaps, open transactions, groups in the wrong partition, orphaned offsets. A load is always
    of the whole partition: -g only chooses which findings are shown, and -t chooses nothing.

    Exit status 3 if a load fails on one of the releases of --loads-on (without it, on the newest), or if anything is
    damaged or doubtful. What is only skipped or noted does not count.
    """
    from cli.output import chosen_format, destination
    from cli.session import open_session
    from offsets_log.checking import DAMAGE, DOUBT, PartitionCheck, partition_count
    from offsets_log.replay.releases import known_releases

    asked = {release.name: release for releases in loads_on for release in releases}
    releases = tuple(asked.values()) or known_releases()
    judged = {release.name for release in (releases if asked else releases[-1:])}
    with open_session(reading) as session:
        checks = []
        for log in session.logs:
            check = PartitionCheck(log, releases)
            check.read(session.events(log), session.on_damage)
            checks.append(check)
        count, source = partition_count(
            {check.log.offsets_partition: check.groups for check in checks if check.log.offsets_partition is not None}
        )
        if partitions is not None:
            count, source = partitions, "option"
        until = now if now is not None else max((check.newest_ms for check in checks), default=-1)
        document: Row = {
            "releases": {release.name: release.rules for release in releases},
            "partitions": {"count": count, "source": source},
            "loads": {_name(check.log.offsets_partition): _verdicts(check.loads) for check in checks},
            "findings": [
                finding.row(check.log.offsets_partition)
                for check in checks
                for finding in check.findings(count, until, is_sure=source != "guess")
                if finding.group is None or session.keep.group(finding.group)
            ],
        }
        loads = [load.row(check.log.offsets_partition) for check in checks for load in check.loads]
        format_name = chosen_format(output)
        with destination(output, session.files) as stream:
            _write(stream, document, loads, format_name)
        failing = [row for row in loads if not row["ok"] and row["releases"][0] in judged]
        wrong = [
            row
            for row in document["findings"]
            if row["severity"] in (DAMAGE, DOUBT) and judged.intersection(row["releases"] or judged)
        ]
        session.is_wrong = bool(failing or wrong)
        session.say(_partitions_in_words(count, source))
        session.finish(
            f"{len(checks)} partitions, {len(releases)} releases; {len(failing)} loads fail"
            + ("" if asked else f" on {releases[-1].name}")
            + f", {len(wrong)} findings of damage or doubt"
        )


def _name(offsets_partition: int | None) -> str:
    return "unknown" if offsets_partition is None else str(offsets_partition)


def _verdicts(loads: Sequence[Load]) -> Row:
    return {load.release.name: load.verdict() for load in loads}


def _partitions_in_words(count: int, source: str) -> str:
    why = {
        "option": "as given",
        "data": "as the groups found show",
        "default": "the default",
        "guess": "the default, which these few groups do not confirm",
    }[source]
    return f"groups are held against {count} partitions of __consumer_offsets, {why}; --partitions N says otherwise"


# ---------------------------------------------------------------------------------------------- output


def _write(stream: Any, document: Row, loads: list[Row], format_name: str) -> None:
    from cli.output import to_json, write_rows
    from offsets_log.checking import CHECK_COLUMNS

    if format_name == "json":
        stream.write(to_json(document, indent=1).encode() + b"\n")
    elif format_name != "table":
        write_rows(stream, [*loads, *document["findings"]], CHECK_COLUMNS, format_name)
    else:
        names = list(document["releases"])
        write_rows(
            stream, _load_table(document["loads"], names), ("offsets_partition", "loads_on", "fails_on"), "table"
        )
        rows = [row | {"releases": _shown_releases(row["releases"] or names, names)} for row in document["findings"]]
        if rows:
            stream.write(b"\n")
            write_rows(stream, rows, FINDINGS_COLUMNS, "table")


def _load_table(loads: dict[str, Row], names: list[str]) -> list[Row]:
    """One row for each partition."""
    rows = []
    for partition, verdicts in loads.items():
        fine = [name for name in names if verdicts[name]["ok"]]
        failing = [name for name in names if not verdicts[name]["ok"]]
        rows.append(
            {
                "offsets_partition": partition,
                "loads_on": _shown_releases(fine, names),
                "fails_on": _shown_releases(failing, names),
            }
        )
    return rows


def _shown_releases(some: list[str], names: list[str]) -> str | None:
    """``all``, or their names, runs of three and more as ``first … last``."""
    if not some:
        return None
    if len(some) == len(names):
        return "all"
    runs: list[list[str]] = []
    for name in some:
        if runs and names.index(name) == names.index(runs[-1][-1]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(f"{run[0]} … {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)
