"""Makes the file of `kafkas_own` from Kafka's jars, in place of that of another release.

python -m tests.protocol.record_messages X.Y.Z [JARS]
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from offsets_log.messages.schema import Message
from tests.protocol.kafkas_own import FILE, Json
from tests.protocol.test_tables import EVERY_API, is_known_to_kio, struct_values
from tools.release_drift.jars import jars_of
from tools.release_drift.java import facts_of, run_java

EXAMPLES = 12
"""Random messages of each kind."""


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(one) for one in value]
    return {name: _bare(one) for name, one in value.items() if name != "about"} if isinstance(value, dict) else value


def _examples(message: Message, version: int) -> list[Json]:
    found: list[Json] = []

    @settings(max_examples=EXAMPLES, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(struct_values(message.fields, version))
    def draw(body: Json) -> None:
        made = {"name": message.name, "version": version, "json": message.to_json(body, version)}
        if made not in found:
            found.append(made)

    draw()
    return found


def main(version: str, folder: str | None = None) -> None:
    """Make the file.

    Args:
        folder: where the jars are; None for the user's cache.
    """
    jars = jars_of(version, None if folder is None else Path(folder))
    messages = [message for api in EVERY_API.values() for message in (api.request, api.response)]
    examples = [
        one
        for api in EVERY_API.values()
        for number in range(api.versions[0], api.versions[1] + 1)
        if not is_known_to_kio(api, number)
        for message in (api.request, api.response)
        for one in _examples(message, number)
    ]
    package = "org.apache.kafka.common.message"
    asked = [json.dumps(one | {"class": f"{package}.{one['name']}Data"}) for one in examples]
    answers = run_java(jars, "Encode", stdin="\n".join(asked)).split("\n")
    written = list(zip(examples, answers, strict=False))
    found = {
        "messages": {message.name: _bare(jars.messages[message.name][1]) for message in messages},
        "errors": {str(code): name for name, code in facts_of(jars)["errors"].items()},
        "examples": [one | {"bytes": told.partition(" ")[0]} for one, told in written if not told.startswith("!")],
        "unwritten": sorted({(one["name"], one["version"]) for one, told in written if told.startswith("!")}),
    }
    FILE.unlink()
    file = FILE.with_name(f"messages-{version}.json.xz")
    file.write_bytes(lzma.compress(json.dumps(found, sort_keys=True).encode(), preset=9 | lzma.PRESET_EXTREME))
    sys.stdout.write(f"{file.name}: {file.stat().st_size} bytes, {len(found['examples'])} examples\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
