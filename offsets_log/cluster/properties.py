"""Translate a client's properties file, as Kafka's own tools take with ``--command-config``, for kafka-python.

The names are those of Java's admin client (``AdminClientConfig``, 3.9 and 4.3), and those of librdkafka where Java has
none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from offsets_log.errors import InputError
from offsets_log.java_properties import parse_properties
from offsets_log.words import counted

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM")


def _one_of(*values: str) -> Callable[[str], str]:
    """Return a reader that accepts only these values: with others kafka-python waits forever."""

    def read(value: str) -> str:
        if value.upper() not in values:
            raise ValueError(f"is none of {', '.join(values)}")
        return value.upper()

    return read


def _number(value: str) -> int:
    if not value.isdecimal():
        raise ValueError("is no number")
    return int(value)


OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "client.id": ("client_id", str),
    "connections.max.idle.ms": ("connections_max_idle_ms", _number),
    "metadata.max.age.ms": ("metadata_max_age_ms", _number),
    "request.timeout.ms": ("request_timeout_ms", _number),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", str),
    "sasl.mechanism": ("sasl_mechanism", _one_of(*MECHANISMS)),
    "sasl.mechanisms": ("sasl_mechanism", _one_of(*MECHANISMS)),
    "sasl.password": ("sasl_plain_password", str),
    "sasl.username": ("sasl_plain_username", str),
    "security.protocol": ("security_protocol", _one_of(*PROTOCOLS)),
}
"""Property → kafka-python's option, and how to read the value."""

PATIENCE = "default.api.timeout.ms"
LOGIN = "sasl.jaas.config"
OF_LOGIN = {"username": "sasl_plain_username", "password": "sasl_plain_password"}
_LOGIN = re.compile(r"""\b(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")

TLS = (
    "ssl.ca.*", "ssl.certificate.*", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm", "ssl.key.*",
    "ssl.keystore.*", "ssl.truststore.*",
)  # fmt: skip
"""Globs of the properties that `stores` makes a TLS context from."""

OAUTH = (
    "sasl.oauthbearer.client.credentials.*", "sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url",
)  # fmt: skip
"""Globs of the properties that `oauth` uses."""

WITHOUT_EFFECT = (
    "auto.include.jmx.reporter", "bootstrap.servers", "client.dns.lookup", "enable.metrics.push", "metadata.recovery.*",
    "metric.reporters", "metrics.*", "receive.buffer.bytes", "reconnect.backoff.*", "retries", "retry.backoff.*",
    "sasl.kerberos.*", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.refresh.*",
    "sasl.login.retry.*", "send.buffer.bytes", "socket.connection.setup.*", "ssl.keymanager.algorithm", "ssl.protocol",
    "ssl.provider", "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
)  # fmt: skip
"""Globs of properties of Java's client that make no difference to a connection here."""

OF_JAVA_ALONE = (
    "bootstrap.controllers", "config.providers", "sasl.client.callback.*", "sasl.login.callback.*", "sasl.login.class",
    "sasl.oauthbearer.*", "security.providers", "ssl.cipher.suites", "ssl.engine.factory.class",
)  # fmt: skip
"""Globs of properties that name Java classes, or brokers that are not asked; without them a connection may fail."""


_NAME = re.compile(r"[a-z][a-z0-9]*([.][a-z0-9_-]+)+|[a-z]{1,9}")
"""What looks like a property's name. A value that was broken into two lines looks like one, too, and may be secret."""


def read_properties(path: str | None, say: Callable[[str], None]) -> Mapping[str, str]:
    """Return the properties of a file, and say which have no effect. Raises InputError.

    Args:
        path: None for no properties.
    """
    if path is None:
        return {}
    properties = parse_properties(Path(path).read_text("utf-8", "replace"), path)
    for words in doubtful(properties):
        say(f"{path}: {words}")
    return properties


def doubtful(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence for each property that is ignored."""
    hidden = [name for name in properties if not _NAME.fullmatch(name)]
    if hidden:
        yield (
            f"{counted(len(hidden), 'line begins', 'lines begin')} with no property's name, and may be the rest of a "
            "secret: a value that goes on needs a backslash before the line break"
        )
    for name in sorted(properties.keys() - {*hidden}):
        if _is_one_of(name, (*OPTIONS, *TLS, *OAUTH, *WITHOUT_EFFECT, LOGIN, PATIENCE)):
            continue
        if _is_one_of(name, OF_JAVA_ALONE):
            yield f"{name} is for Java's client alone: it has no effect here"
        else:
            yield f"{name} is no property of Kafka's tools: it has no effect"


def _is_one_of(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def client_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return kafka-python's options.

    Raises:
        InputError: a value makes no sense, or a store cannot be read.
    """
    from offsets_log.cluster.oauth import Tokens, provider
    from offsets_log.cluster.stores import tls_context

    options: dict[str, Any] = {}
    for name, value in properties.items():
        if name in OPTIONS:
            option, read = OPTIONS[name]
            try:
                options[option] = read(value)
            except ValueError as error:
                raise InputError(f"{value!r} {error}", field=name) from None
    login = _login(properties.get(LOGIN, ""))
    options |= {option: login[name] for name, option in OF_LOGIN.items() if name in login}
    _check_login(options)
    if options.get("sasl_mechanism") == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = provider(Tokens(properties, login))
    if "SSL" in options.get("security_protocol", ""):
        options["ssl_context"] = tls_context(properties)
    return options


def patience_seconds(properties: Mapping[str, str], default: float) -> float:
    """Return how many seconds to retry a cluster that does not answer. Raises InputError."""
    value = properties.get(PATIENCE)
    if value is None:
        return default
    try:
        return _number(value) / 1000
    except ValueError as error:
        raise InputError(f"{value!r} {error}", field=PATIENCE) from None


def _login(jaas: str) -> dict[str, str]:
    """Return name → value of a line for Java's login modules."""
    return {
        name: re.sub(r"\\(.)", r"\1", double or single) if double or single else bare
        for name, double, single, bare in _LOGIN.findall(jaas)
    }


def _check_login(options: Mapping[str, Any]) -> None:
    """Raise InputError for missing login settings, for which kafka-python would wait forever."""
    if not options.get("security_protocol", "").startswith("SASL"):
        return
    if "sasl_mechanism" not in options:
        raise InputError(f"a SASL protocol needs one of {', '.join(MECHANISMS)}", field="sasl.mechanism")
    needed = ("sasl_plain_username", "sasl_plain_password")
    if options["sasl_mechanism"].startswith(("PLAIN", "SCRAM")) and not all(map(options.get, needed)):
        raise InputError('it must hold username="..." and password="..."', field=LOGIN)
