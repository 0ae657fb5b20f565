"""A client's properties file, as Kafka's own tools take with ``--command-config``, for kafka-python.

The names are those of Java clients, of librdkafka where Java has none, or kafka-python's own with dots. Keys and
certificates are PEM files; Java's key stores are not read.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from offsets_log.errors import InputError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")


def _one_of(*values: str) -> Callable[[str], str]:
    """kafka-python waits for ever with others."""

    def read(value: str) -> str:
        if value.upper() not in values:
            raise ValueError(f"is none of {', '.join(values)}")
        return value.upper()

    return read


def _file(value: str) -> str:
    if not Path(value).is_file():
        raise ValueError("is no file")
    return value


def _number(value: str) -> int:
    if not value.isdecimal():
        raise ValueError("is no number")
    return int(value)


OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "client.id": ("client_id", str),
    "request.timeout.ms": ("request_timeout_ms", _number),
    "security.protocol": ("security_protocol", _one_of(*PROTOCOLS)),
    "sasl.mechanism": ("sasl_mechanism", _one_of(*MECHANISMS)),
    "sasl.mechanisms": ("sasl_mechanism", _one_of(*MECHANISMS)),
    "sasl.username": ("sasl_plain_username", str),
    "sasl.password": ("sasl_plain_password", str),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", str),
    "ssl.truststore.location": ("ssl_cafile", _file),
    "ssl.ca.location": ("ssl_cafile", _file),
    "ssl.keystore.location": ("ssl_certfile", _file),
    "ssl.certificate.location": ("ssl_certfile", _file),
    "ssl.key.location": ("ssl_keyfile", _file),
    "ssl.key.password": ("ssl_password", str),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", bool),
}
"""Property → kafka-python's option and how to read the value; an empty identification algorithm means no check."""

STORE_TYPES = ("ssl.truststore.type", "ssl.keystore.type")
LOGIN = "sasl.jaas.config"
_LOGIN = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


def parse_properties(text: str, file: str) -> dict[str, str]:
    """``name=value`` lines; ``#`` and ``!`` begin comments, a backslash at the end joins lines.

    Raises:
        InputError: a line is none of these.
    """
    found: dict[str, str] = {}
    joined = re.sub(r"\\\r?\n[ \t]*", "", text)
    for number, line in enumerate(joined.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name.strip():
            raise InputError(f"line {number} is not name=value", file=file)
        found[name.strip()] = value.strip()
    return found


def client_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """kafka-python's options.

    Raises:
        InputError: a property is not known, or its value makes no sense.
    """
    options: dict[str, Any] = {}
    for name, value in properties.items():
        if name == LOGIN:
            found = {key: re.sub(r"\\(.)", r"\1", text) for key, text in _LOGIN.findall(value)}
            options |= {f"sasl_plain_{key}": text for key, text in found.items()}
        elif name in STORE_TYPES:
            if value.upper() != "PEM":
                raise InputError(f"{name}={value}: only PEM files can be read", field=name)
        elif name in OPTIONS:
            option, read = OPTIONS[name]
            try:
                options[option] = read(value)
            except ValueError as error:
                raise InputError(f"{value!r} {error}", field=name) from None
        else:
            raise InputError(f"unknown property; known are {', '.join((*OPTIONS, LOGIN, *STORE_TYPES))}", field=name)
    _check_login(options)
    tls = {option: options.pop(option) for option in list(options) if option.startswith("ssl_")}
    if "SSL" in options.get("security_protocol", ""):
        options["ssl_context"] = _tls_context(tls)
    return options


def _check_login(options: Mapping[str, Any]) -> None:
    """kafka-python waits for ever for what is missing here."""
    if not options.get("security_protocol", "").startswith("SASL"):
        return
    if "sasl_mechanism" not in options:
        raise InputError("a SASL protocol needs one", field="sasl.mechanism")
    needed = ("sasl_plain_username", "sasl_plain_password")
    if options["sasl_mechanism"].startswith(("PLAIN", "SCRAM")) and not all(map(options.get, needed)):
        raise InputError('it must hold username="..." and password="..."', field=LOGIN)


def _tls_context(tls: Mapping[str, Any]) -> ssl.SSLContext:
    """Made here: kafka-python does not come back from a file it cannot read. By default the system's authorities."""
    try:
        context = ssl.create_default_context(cafile=tls.get("ssl_cafile"))
        context.check_hostname = tls.get("ssl_check_hostname", True)
        if "ssl_certfile" in tls:
            password = tls.get("ssl_password", "")  # never asked for on the terminal
            context.load_cert_chain(tls["ssl_certfile"], tls.get("ssl_keyfile"), password)
    except (OSError, ValueError) as error:
        raise InputError(f"the keys or certificates cannot be read: {error}") from None
    return context
