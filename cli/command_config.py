"""``--command-config``: a client's properties, and a word on those that have no effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path


def properties_of(command_config: str | None, say: Callable[[str], None]) -> Mapping[str, str]:
    """Read the file. Raises InputError."""
    from offsets_log.cluster.properties import doubtful
    from offsets_log.java_properties import parse_properties

    if command_config is None:
        return {}
    properties = parse_properties(Path(command_config).read_text("utf-8", "replace"), command_config)
    for words in doubtful(properties):
        say(f"{command_config}: {words}")
    return properties
