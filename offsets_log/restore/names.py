"""Put hostile names in safe places: file names, shell words; and tell which names no tool can take.

A group's name is any string of up to 32,767 bytes, even empty; a topic's name is what
``org.apache.kafka.common.internals.Topic`` (clients/src/main/java/org/apache/kafka/common/internals/Topic.java) allows.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from functools import lru_cache
from urllib.parse import quote

from offsets_log.rows.tables import Row

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
MAX_FILE_NAME = 200
"""Maximum length of an encoded name in bytes; file systems allow 255, suffix included."""


def file_name(name: str) -> str:
    """Return a group or topic percent-encoded, as one part of a path.

    ``urllib.parse.unquote`` gives the name back. If a name is too long for a file system, its end is replaced by ``%~``
    and a hash; no encoded name contains ``%~``.
    """
    encoded = name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")
    if len(encoded) <= MAX_FILE_NAME:
        return encoded
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{encoded[: MAX_FILE_NAME - 34]}%~{digest}"


def shell_word(text: str) -> str:
    """Return a text as one word of a POSIX shell command; it may hold anything but NUL."""
    return shlex.quote(text)


def shown(name: str) -> str:
    """Return a name in quotes for people; unless all of it is printable, everything but ASCII is escaped."""
    return json.dumps(name, ensure_ascii=not name.isprintable())


@lru_cache(1 << 14)
def is_topic_name(name: str) -> bool:
    """Whether a broker can have a topic of this name."""
    return bool(_TOPIC.fullmatch(name)) and name not in (".", "..")


def refused_by_all(row: Row) -> str | None:
    """Return why no tool can take a row of compact; None if nothing general speaks against it."""
    if "group_base64" in row:
        return "the group's name is not UTF-8: the tool would commit for another name"
    if "topic_base64" in row:
        return "the topic's name is not UTF-8: the tool would ask for another name"
    if not is_topic_name(row["topic"]):
        return "no broker can have a topic of this name"
    if row["partition"] < 0:
        return "no topic has a negative partition"
    return None


def refused_in_arguments(group: str) -> str | None:
    """Return why a group cannot be named on a command line; None if it can."""
    return "a command's argument cannot hold the NUL in the group's name" if "\0" in group else None
