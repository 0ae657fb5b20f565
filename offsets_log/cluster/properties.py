"""A client's properties file, as Kafka's own tools take with ``--command-config``, for kafka-python.

The names are those of Java clients, of librdkafka where Java has none, or kafka-python's own with dots. Keys and
certificates are PEM files; Java's key stores are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from offsets_log.errors import InputError

OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "client.id": ("client_id", str),
    "request.timeout.ms": ("request_timeout_ms", int),
    "security.protocol": ("security_protocol", str.upper),
    "sasl.mechanism": ("sasl_mechanism", str.upper),
    "sasl.mechanisms": ("sasl_mechanism", str.upper),
    "sasl.username": ("sasl_plain_username", str),
    "sasl.password": ("sasl_plain_password", str),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", str),
    "ssl.truststore.location": ("ssl_cafile", str),
    "ssl.ca.location": ("ssl_cafile", str),
    "ssl.keystore.location": ("ssl_certfile", str),
    "ssl.certificate.location": ("ssl_certfile", str),
    "ssl.key.location": ("ssl_keyfile", str),
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
            except ValueError:
                raise InputError(f"{name}={value} is no number", field=name) from None
        else:
            raise InputError(f"unknown property; known are {', '.join((*OPTIONS, LOGIN, *STORE_TYPES))}", field=name)
    return options
