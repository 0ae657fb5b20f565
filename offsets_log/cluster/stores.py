"""Make a TLS context from keys and certificates of a client's properties: PEM, JKS and PKCS #12 stores.

The first bytes of a file tell its format, not ``ssl.keystore.type``.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from offsets_log.cluster.jks import MAGIC, read_jks
from offsets_log.errors import InputError
from offsets_log.words import to_install

_PEM = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+\s+((?:[A-Za-z-]+: [^\n]*\n)*)([A-Za-z0-9+/=\s]+?)-+END \1-+")
_LINE = 64
DER_SEQUENCE = b"0"
"""The first byte of a PKCS #12 store."""


class Material(NamedTuple):
    """PEM texts: a private key (empty without one), its certificates, and certificates of others."""

    key: str = ""
    chain: str = ""
    trusted: str = ""


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context for the ``ssl.…`` properties; by default the system's authorities are trusted.

    Raises:
        InputError: a store cannot be read; the error has a command line that converts it to one that can.
    """
    context = ssl.create_default_context()
    context.check_hostname = bool(properties.get("ssl.endpoint.identification.algorithm", "https"))
    _limit_versions(context, properties)
    trust, key = _Store(properties, "truststore"), _Store(properties, "keystore")
    if trust.is_given:
        context = _trusting_only(context, trust)
    if key.is_given:
        with key.errors():
            material = key.material()
            if not material.key or not material.chain:
                raise ValueError("it holds no private key with a certificate")
            with _file_of(material.key + material.chain) as path:
                try:
                    context.load_cert_chain(path, password=key.key_password or "")  # never ask on the terminal
                except ssl.SSLError:
                    raise ValueError(
                        "ssl.key.password does not open the key, or the key is not the certificate's"
                    ) from None
    return context


def has_key(properties: Mapping[str, str]) -> bool:
    """Return whether a client has its own key."""
    return _Store(properties, "keystore").is_given


def _trusting_only(old: ssl.SSLContext, trust: _Store) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = old.check_hostname
    context.minimum_version, context.maximum_version = old.minimum_version, old.maximum_version
    with trust.errors():
        material = trust.material()
        certificates = material.trusted + material.chain
        if not certificates:
            raise ValueError("it holds no certificate")
        context.load_verify_locations(cadata=certificates)
    return context


VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def _limit_versions(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Limit TLS to ``ssl.enabled.protocols``; without it to 1.2 and 1.3, as in Java's clients."""
    names = [name.strip() for name in properties.get("ssl.enabled.protocols", ",".join(VERSIONS)).split(",")]
    versions = [VERSIONS[name] for name in names if name in VERSIONS]
    if not versions:
        raise InputError(f"none of {', '.join(VERSIONS)} is among them", field="ssl.enabled.protocols")
    context.minimum_version, context.maximum_version = min(versions), max(versions)


class _Store:
    """The place where the properties put a client's keys, or the certificates that it trusts."""

    def __init__(self, properties: Mapping[str, str], store: str) -> None:
        self._store = store
        self._inline = "\n".join(properties[name] for name in _INLINE[store] if properties.get(name))
        self._files = [properties[name] for name in _FILES[store] if properties.get(name)]
        self.password = properties.get(f"ssl.{store}.password")
        self.key_password = properties.get("ssl.key.password")
        self.is_given = bool(self._inline or self._files)

    def material(self) -> Material:
        """Return the keys and certificates."""
        if self._inline:
            return pem_material(self._inline)
        found = [self._read(Path(file).read_bytes()) for file in self._files]
        return Material(*("".join(texts) for texts in zip(*found, strict=True)))

    def _read(self, data: bytes) -> Material:
        if data.startswith(MAGIC):
            key, chain, trusted = read_jks(data, self.password, self.key_password)
            self.key_password = None  # it is decrypted
            return Material(
                "" if key is None else _pem("PRIVATE KEY", key),
                "".join(_pem("CERTIFICATE", der) for der in chain),
                "".join(_pem("CERTIFICATE", der) for der in trusted),
            )
        if data.startswith(DER_SEQUENCE):
            self.key_password = None
            return _pkcs12_material(data, self.password)
        return pem_material(data.decode("utf-8", "replace"))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what cannot be read as an InputError with a way to fix it."""
        try:
            yield
        except (OSError, ValueError, UnicodeError) as error:
            field = f"ssl.{self._store}.location"
            if not self._files:
                raise InputError(f"the certificates or the key cannot be read: {error}", field=field) from None
            problem = getattr(error, "strerror", None) or error
            raise InputError(f"{problem}; {_way_out(self._files[0], self._store)}", file=self._files[0]) from None


_INLINE = {
    "keystore": ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.pem", "ssl.certificate.pem"),
    "truststore": ("ssl.truststore.certificates", "ssl.ca.pem"),
}
_FILES = {
    "keystore": ("ssl.keystore.location", "ssl.key.location", "ssl.certificate.location"),
    "truststore": ("ssl.truststore.location", "ssl.ca.location"),
}
"""Properties with PEM texts, and with file names: of Java's clients, and of librdkafka."""


def _way_out(file: str, store: str) -> str:
    """Return a command line that shows what is wrong with a PEM file, or converts another store to one."""
    name = shlex.quote(file)
    start = Path(file).read_bytes()[:8] if Path(file).is_file() else b""
    if not start:
        return f"ssl.{store}.location must name a file"
    if start.startswith(b"-----BEG"):
        return f"openssl {'pkey' if store == 'keystore' else 'x509'} -in {name} -noout tells whether it can be read"
    line = f"openssl pkcs12 -in {{}} {'-nodes' if store == 'keystore' else '-nokeys'} -out {name}.pem"
    if start.startswith(DER_SEQUENCE):
        return f"{line.format(name)} makes a PEM file of it, for ssl.{store}.location"
    return (
        f"keytool -importkeystore -srckeystore {name} -destkeystore {name}.p12 -deststoretype PKCS12 && "
        f"{line.format(f'{name}.p12')} makes a PEM file of it, for ssl.{store}.location"
    )


def pem_material(text: str) -> Material:
    """Return keys and certificates of a text, whose line breaks may have become spaces (DefaultSslEngineFactory)."""
    blocks = [(name, headers, re.sub(r"\s", "", body)) for name, headers, body in _PEM.findall(text)]
    if not blocks:
        raise ValueError("it holds no PEM block, and is no JKS or PKCS #12 store")

    def joined(is_key: bool) -> str:
        return "".join(
            _block(name, body, headers)
            for name, headers, body in blocks
            if name.endswith("PRIVATE KEY") == is_key and (is_key or name.endswith("CERTIFICATE"))
        )

    return Material(joined(True), joined(False))


def _pem(name: str, der: bytes) -> str:
    return _block(name, base64.b64encode(der).decode())


def _block(name: str, body: str, headers: str = "") -> str:
    lines = "\n".join(body[at : at + _LINE] for at in range(0, len(body), _LINE))
    return f"-----BEGIN {name}-----\n{headers and headers + chr(10)}{lines}\n-----END {name}-----\n"


def _pkcs12_material(data: bytes, password: str | None) -> Material:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ValueError(f"PKCS #12 stores need cryptography: {to_install('restore')}") from None
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise ValueError(f"the store's password is wrong, or it cannot be read: {error}") from None
    pem = serialization.Encoding.PEM
    key = (
        ""
        if store.key is None
        else store.key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    )
    own = "" if store.cert is None else store.cert.certificate.public_bytes(pem).decode()
    others = "".join(found.certificate.public_bytes(pem).decode() for found in store.additional_certs)
    return Material(key, own + others if key else "", "" if key else own + others)


@contextmanager
def _file_of(text: str) -> Iterator[str]:
    """Yield a file name under which OpenSSL finds a text: in memory where possible, so that no key is on a disk."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("offsets-log")
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # nobody else may read it
        file.write(text)
        file.flush()
        yield file.name
