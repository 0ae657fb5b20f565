"""Write CSV for ``kafka-consumer-groups.sh --reset-offsets --from-file``, and a script that sets all groups with it.

The form comes from apache/kafka, tools/src/main/java/org/apache/kafka/tools/consumer/group: ``CsvUtils`` (column orders
``CsvRecordNoGroup`` and ``CsvRecordWithGroup``, Jackson's CSV quoting) and
``ConsumerGroupCommand.ConsumerGroupService.parseResetPlan``. There is no header; lines are split at ``\\n`` before
quotes are parsed; the form without groups is read only with exactly one ``--group``. Tests with the class of Kafka
4.3.0 showed:

- A negative offset or an empty group stops the run; so does a topic that does not exist, after some groups were set.
- It exits with 0 even then: only the word ``Error:`` on standard output shows the failure.
- The form with groups prints two Jackson stack traces for each group before it works.
- Offsets outside a partition's log are moved to its start or end; metadata and leader epochs are wiped.
- A group that does not exist is created; ``--all-groups`` takes only existing groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from offsets_log.restore.names import file_name, refused_by_all, refused_in_arguments, shell_word
from offsets_log.restore.reset_script import EXIT, RESET
from offsets_log.restore.rows import Files, by_group
from offsets_log.rows.tables import Row

NAME = "kafka-consumer-groups"
ALL_GROUPS = "all-groups.csv"
GROUPS_A_RUN = 100
"""Groups of one call: the tool parses the whole file twice for each group, and a command line has a length limit."""

_BARE = re.compile(r"[\w.-]+")

_SCRIPT = r"""#!/bin/sh
# Sets the offsets of all-groups.csv. The groups must have no members. Without --execute nothing is changed:
#   ./run.sh --bootstrap-server HOST:PORT [--command-config FILE] [--execute]
# The tool prints Jackson stack traces before it works (harmless), and exits with 0 even where it failed: this script
# looks for its word "Error:" and exits with 1 then. KAFKA_CONSUMER_GROUPS names the tool if it is not in the PATH.
export LC_ALL=C.UTF-8
plan=$(dirname "$0")/all-groups.csv
tool=${KAFKA_CONSUMER_GROUPS:-kafka-consumer-groups.sh}
"""


def refusal(row: Row) -> str | None:
    """Return why the tool cannot take this row; None if it can."""
    group = row["group"]
    if group == "":
        return "the tool refuses the empty group, and with it the whole run (INVALID_GROUP_ID)"
    if "\n" in group:
        return "the tool splits its file at line breaks, also inside a quoted group"
    if row["committed_offset"] < 0:
        return "the tool refuses negative offsets, and with them the whole run"
    return refused_by_all(row) or refused_in_arguments(group)


def group_file(group: str) -> str:
    """Return the path of a group's own file; a group called all-groups does not replace the file of all groups."""
    name = f"{file_name(group)}.csv"
    return f"{NAME}/{'all%2Dgroups.csv' if name == ALL_GROUPS else name}"


def files(rows: Sequence[Row]) -> Files:
    """Yield all-groups.csv, run.sh, and one file for each group."""
    yield f"{NAME}/{ALL_GROUPS}", (f"{_quoted(row['group'])},{_line(row)}" for row in rows)
    yield f"{NAME}/run.sh", _script(rows)
    for group, own in by_group(rows):
        yield group_file(group), map(_line, own)


def command(group: str) -> str:
    """Return the command that sets one group from its own file."""
    return (
        "kafka-consumer-groups.sh --bootstrap-server HOST:PORT --reset-offsets "
        f"--from-file {shell_word(group_file(group))} --group={shell_word(group)} --execute"
    )


def _line(row: Row) -> str:
    return f"{row['topic']},{row['partition']},{row['committed_offset']}\n"


def _quoted(group: str) -> str:
    if _BARE.fullmatch(group):
        return group
    doubled = group.replace('"', '""')
    return f'"{doubled}"'


def _script(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the script: one call for each hundred groups, their names as shell words."""
    yield _SCRIPT + RESET
    groups = (group for group, _ in by_group(rows))
    while some := list(islice(groups, GROUPS_A_RUN)):
        yield 'reset --from-file "$plan" "$@"'
        yield from (f" \\\n    --group={shell_word(group)}" for group in some)
        yield "\n"
    yield EXIT
