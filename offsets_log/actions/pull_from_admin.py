"""``pull --from-admin``: what a running cluster tells of its groups, as files that set their offsets again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from offsets_log.actions.plan_files import DOUBTS_SHOWN, write_files
from offsets_log.cluster.groups import GroupsReader
from offsets_log.cluster.properties import read_properties
from offsets_log.cluster.reader import ClusterReader
from offsets_log.disk.writer import atomic_directory
from offsets_log.errors import ClusterError
from offsets_log.pulling.copy import now_ms
from offsets_log.pulling.snapshot import snapshot_plan
from offsets_log.restore.directory import rescue_files
from offsets_log.session.account import EXIT_DAMAGED
from offsets_log.words import counted


def snapshot(bootstrap_server: str, to: str, command_config: str | None, say: Callable[[str], None]) -> int:
    """Write the plan and its files into a new directory; return the exit status.

    Args:
        command_config: a file of properties for the connection.
        say: hears of it.

    Raises:
        OffsetsLogError: the cluster cannot be asked, tells nothing, or the directory cannot be written.
    """

    properties = read_properties(command_config, say)
    with atomic_directory(to) as directory, closing(ClusterReader(bootstrap_server, properties)) as reader:
        began_ms = now_ms()
        groups = GroupsReader(reader, say)
        groups.read()
        if groups.unlisted and not groups.groups:
            raise ClusterError("; ".join(f"broker {node_id}: {why}" for node_id, why in groups.unlisted.items()))
        plan = snapshot_plan(reader, reader.metadata(), groups, began_ms, now_ms())
        write_files(directory, rescue_files(plan))
    for doubt in plan["doubts"][:DOUBTS_SHOWN]:
        say(doubt)
    if len(plan["doubts"]) > DOUBTS_SHOWN:
        say(f"{len(plan['doubts']) - DOUBTS_SHOWN} more in README.txt")
    if not plan["groups"]:
        say("the cluster lists no group to this user: there is none, or the right to DESCRIBE groups is missing")
    owners = len({row["group"] for row in plan["offsets"]})
    say(
        f"{counted(len(plan['offsets']), 'offset')} of {owners} of {counted(len(plan['groups']), 'group')}; read "
        f"{to}/README.txt first"
    )
    return EXIT_DAMAGED if groups.unlisted or plan["refused"] or not plan["groups"] else 0
