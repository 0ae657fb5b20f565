"""What Kafka 4.4.0 itself says of its messages, as `record_messages` has taken it out of its jars.

The file holds the descriptions of requests and responses that there are tables of (``common/message`` of kafka-clients,
comments and texts left out), the error codes, and of versions that kio does not know bytes that Kafka's own classes
(`Messages.java`) wrote for random messages.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]
VERSION = "4.4.0"
FILE = Path(__file__).with_name(f"messages-{VERSION}.json.xz")


@cache
def kafkas_own() -> Json:
    """The parts ``messages`` (by name), ``errors`` (name by code, as text) and ``examples``."""
    found: Json = json.loads(lzma.decompress(FILE.read_bytes()))
    return found
