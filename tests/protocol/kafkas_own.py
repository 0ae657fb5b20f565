"""What the newest release of Kafka itself says of its messages, as `record_messages` has taken it out of its jars.

The file holds the descriptions of requests and responses that there are tables of (``common/message`` of kafka-clients,
comments and texts left out), the error codes, and of versions that kio does not know bytes that Kafka's own classes
wrote for random messages.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]
(FILE,) = Path(__file__).parent.glob("messages-*.json.xz")


@cache
def kafkas_own() -> Json:
    """Return its parts.

    They are ``messages`` (by name), ``errors`` (name by code, as text), ``examples``, and ``unwritten``: names and
    versions that a description has and no class, which only jars have that somebody made up.
    """
    found: Json = json.loads(lzma.decompress(FILE.read_bytes()))
    return found
