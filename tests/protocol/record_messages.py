"""Makes the file of `kafkas_own` from Kafka's jars.

python -m tests.protocol.record_messages
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from offsets_log.messages.schema import Message
from tests.coordinator.broker import compiled, jars
from tests.protocol.kafkas_own import FILE, VERSION, Json
from tests.protocol.test_tables import EVERY_API, is_known_to_kio, struct_values

PROGRAM = Path(__file__).with_name("Messages.java")
EXAMPLES = 12
"""Random messages of each kind."""


def _descriptions(jar: Path, names: set[str]) -> dict[str, Json]:
    with zipfile.ZipFile(jar) as packed:
        texts = {name: packed.read(f"common/message/{name}.json").decode() for name in sorted(names)}
    return {name: _bare(json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))) for name, text in texts.items()}


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


def main() -> None:
    """Make the file."""
    libs = jars(VERSION)
    command = ["java", "-cp", f"{libs}/*:{compiled(libs, PROGRAM)}", "Messages"]
    messages = [message for api in EVERY_API.values() for message in (api.request, api.response)]
    examples = [
        one
        for api in EVERY_API.values()
        for version in range(api.versions[0], api.versions[1] + 1)
        if not is_known_to_kio(api, version)
        for message in (api.request, api.response)
        for one in _examples(message, version)
    ]
    lines = "".join(f"{one['name']}\t{one['version']}\t{json.dumps(one['json'])}\n" for one in examples)
    written = subprocess.run(command, input=lines.encode(), check=True, capture_output=True).stdout.decode().split()
    errors = subprocess.run([*command, "errors"], check=True, capture_output=True, input=b"").stdout.decode()
    found = {
        "messages": _descriptions(libs / f"kafka-clients-{VERSION}.jar", {message.name for message in messages}),
        "errors": dict(line.split("\t") for line in errors.splitlines()),
        "examples": [one | {"bytes": text} for one, text in zip(examples, written, strict=True)],
    }
    FILE.write_bytes(lzma.compress(json.dumps(found, sort_keys=True).encode(), preset=9 | lzma.PRESET_EXTREME))
    sys.stdout.write(f"{FILE.name}: {FILE.stat().st_size} bytes, {len(examples)} examples\n")


if __name__ == "__main__":
    main()
