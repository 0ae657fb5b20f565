"""URLs of stores: which there are, what may be shown of them, and those that are refused before anybody is asked."""

from __future__ import annotations

import re
from itertools import groupby
from urllib.parse import quote, unquote

from offsets_log.errors import InputError

BUCKETS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss")
"""Kinds whose URLs begin with a bucket or a container, which has no port."""
OF_PYARROW = (*BUCKETS, "hdfs", "viewfs")
"""Kinds that pyarrow reads; what it refuses of them is read by nothing else."""
WITH_QUERIES = ("http", "https")
"""Kinds of URLs whose query is a part of the name."""
_KNOWN = "|".join((*OF_PYARROW, *WITH_QUERIES))
_URL = re.compile(rf"(?:({_KNOWN}):|([A-Za-z][A-Za-z0-9+.:-]*)://)(.*)", re.DOTALL | re.IGNORECASE)
_BEGIN = rf"(?:\b(?:{_KNOWN}):|\b[A-Za-z][A-Za-z0-9+.-]+:/)/*"
_USERS = re.compile(rf"({_BEGIN})(.*)@", re.DOTALL | re.IGNORECASE)
_QUERIES = re.compile(rf"({_BEGIN}[^\s'\"?]*)\?[^\s'\"]*", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/?#]*@|\?.*", re.DOTALL)
_PIECE = 4
"""So many signs of a secret in a row are left out of what others say."""
_NO_SECRETS = ("region=", "scheme=", "endpoint_override=")
"""Options that errors may name with their values."""
HIDDEN = "…"
ESCAPES = "write %2F for / and %3F for ? in a secret, and %40 for @ in it and in a path"


def is_url(path: str) -> bool:
    """Return whether a path is a URL of a store, well-formed or not; ``file:`` is this machine's disk."""
    match = _URL.match(path)
    return match is not None and (match[1] or match[2]).lower() != "file"


def without_secrets(text: str) -> str:
    """Return a path or text as it may be shown: nothing before the last ``@`` behind a scheme, and no query.

    A ``/`` or a ``?`` before the ``@`` may be a secret's or a path's: what is left out for it is told by a sign.
    """
    shown = _USERS.sub(lambda match: match[1] + (f"{HIDDEN}@" if re.search(r"[/?#\s]", match[2]) else ""), text)
    return _QUERIES.sub(r"\1", shown)


def bare(url: str) -> str:
    """Return a URL that was accepted, without its user and its query."""
    return _USER.sub("", url)


def masked(said: str, url: str) -> str:
    """Return what somebody else says of a URL, without any part of its secrets."""
    for whole in (url, quoted(url)):
        said = said.replace(whole, without_secrets(url))
    said = without_secrets(said)
    _, _, rest = url.partition(":")
    user, _, place = rest.rpartition("@")
    options = (option for option in place.partition("?")[2].split("&") if not option.startswith(_NO_SECRETS))
    secrets = [user.lstrip("/"), *(option.partition("=")[2] for option in options)]
    hidden = bytearray(len(said))
    for secret in (*secrets, *map(unquote, secrets), *map(quote, secrets)):
        for begin in range(len(secret) - _PIECE + 1):
            for found in re.finditer(f"(?={re.escape(secret[begin : begin + _PIECE])})", said):
                hidden[found.start() : found.start() + _PIECE] = b"\1" * _PIECE
    parts = groupby(zip(said, hidden, strict=True), key=lambda sign: sign[1])
    return "".join(HIDDEN if is_hidden else "".join(sign for sign, _ in signs) for is_hidden, signs in parts)


def checked(url: str) -> tuple[str, str]:
    """Return a URL's kind, and the URL with its kind in small letters.

    Raises:
        InputError: it is none, or may be taken for another than is meant: a secret has a sign that ends it.
    """
    match = _URL.match(url)
    assert match is not None
    kind, rest = (match[1] or match[2]).lower(), match[3] if match[2] else match[3].removeprefix("//")
    if match[2] is None and not match[3].startswith("//"):
        raise InputError(f"this is no URL: write {kind}://…", file=without_secrets(url))
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    _, colon, port = place.partition(":")
    if "@" in rest[len(place) :] and colon and (kind in BUCKETS or not ("@" in place or port.isdigit())):
        raise InputError(f"this URL cannot be read: {ESCAPES}", file=without_secrets(url))
    return kind, f"{kind}://{rest}"


def quoted(url: str) -> str:
    """Return a URL whose path has no sign that is not allowed there: of globs, for example."""
    place, question, query = url.partition("?")
    return quote(place, safe="/:@%+!$&'(),;=~") + question + query
