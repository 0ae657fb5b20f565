"""Read JKS, Java's own key store format: certificates, and private keys protected by a password.

The form comes from OpenJDK: src/java.base/share/classes/sun/security/provider/JavaKeyStore.java, ``engineLoad``; the
protection of keys from KeyProtector.java beside it, ``recover``: a key stream of SHA-1 digests, followed by a digest of
the key.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from construct import (
    Bytes,
    Const,
    ConstructError,
    GreedyBytes,
    IfThenElse,
    Int16ub,
    Int32ub,
    Int64ub,
    Prefixed,
    PrefixedArray,
    Struct,
    this,
)

MAGIC = bytes.fromhex("feedfeed")
DIGEST_BYTES = 20
WHITENER = b"Mighty Aphrodite"
PROTECTION = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier of this protection of keys, in DER."""

_TEXT = Prefixed(Int16ub, GreedyBytes)
_CERTIFICATE = Struct("type" / _TEXT, "der" / Prefixed(Int32ub, GreedyBytes))
_KEY = Struct("protected" / Prefixed(Int32ub, GreedyBytes), "chain" / PrefixedArray(Int32ub, _CERTIFICATE))
_ENTRY = Struct(
    "tag" / Int32ub,
    "alias" / _TEXT,
    "created_ms" / Int64ub,
    "value" / IfThenElse(this.tag == 1, _KEY, _CERTIFICATE),
)
_STORE = Struct(Const(MAGIC), Const(2, Int32ub), "entries" / PrefixedArray(Int32ub, _ENTRY), "digest" / Bytes(20))


class JksStore(NamedTuple):
    """The contents of a store.

    Attributes:
        key: the first private key as PKCS #8 DER; None without one.
        chain: its certificates, DER, the key's own first.
        trusted: certificates of others, DER.
    """

    key: bytes | None
    chain: list[bytes]
    trusted: list[bytes]


def read_jks(data: bytes, password: str | None, key_password: str | None) -> JksStore:
    """Read a store.

    Args:
        password: the store's password; without one its digest is not verified, as in Java.
        key_password: the key's password, if it differs.

    Raises:
        ValueError: it is no such store, or a password is wrong.
    """
    try:
        store = _STORE.parse(data)
    except ConstructError:
        raise ValueError("it is cut off, or no JKS store of version 2") from None
    if password is not None:
        digest = hashlib.sha1(_utf16(password) + WHITENER + data[:-DIGEST_BYTES]).digest()
        if digest != store.digest:
            raise ValueError("the store's password is wrong, or the file is damaged")
    keys = [entry.value for entry in store.entries if entry.tag == 1]
    trusted = [entry.value.der for entry in store.entries if entry.tag != 1]
    if not keys:
        return JksStore(None, [], trusted)
    key = _recover(keys[0].protected, key_password if key_password is not None else password or "")
    return JksStore(key, [certificate.der for certificate in keys[0].chain], trusted)


def _recover(protected: bytes, password: str) -> bytes:
    """Return a decrypted key. Raises ValueError."""
    if PROTECTION not in protected[:32]:
        raise ValueError("the key is protected in a way that is not JKS's")
    cover = _octets(protected)
    salt, covered, digest = cover[:DIGEST_BYTES], cover[DIGEST_BYTES:-DIGEST_BYTES], cover[-DIGEST_BYTES:]
    stream, last = b"", salt
    while len(stream) < len(covered):
        last = hashlib.sha1(_utf16(password) + last).digest()
        stream += last
    key = bytes(a ^ b for a, b in zip(covered, stream, strict=False))
    if hashlib.sha1(_utf16(password) + key).digest() != digest:
        raise ValueError("the key's password is wrong")
    return key


def _octets(der: bytes) -> bytes:
    """Return the octet string at the end of ``SEQUENCE { SEQUENCE { algorithm }, OCTET STRING }``."""
    _, outer, _ = _element(der)
    _, _, rest = _element(outer)
    _, octets, _ = _element(rest)
    return octets


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Return a DER element's tag and content, and the bytes after it."""
    if len(der) < 2:
        raise ValueError("the key is cut off")
    size, start = der[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[2:start], "big")
    return der[0], der[start : start + size], der[start + size :]


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")
