"""Find out why a cluster cannot be reached: try each server once, and say what went wrong."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from offsets_log.cluster.address import address
from offsets_log.cluster.broker import BrokerConnection, LoginError
from offsets_log.errors import ClusterError
from offsets_log.protocol.error_codes import ILLEGAL_SASL_STATE, UNSUPPORTED_SASL_MECHANISM
from offsets_log.protocol.metadata import METADATA, NO_TOPIC

CONNECT_SECONDS = 5.0


def reach(servers: Sequence[str], options: Mapping[str, Any], *, has_key: bool) -> None:
    """Return as soon as one server answers.

    Args:
        servers: ``HOST:PORT``.
        options: kafka-python's options.
        has_key: whether the client has its own key for TLS.

    Raises:
        ClusterError: no server answers; the error says why, once for each different cause.
    """
    causes: dict[str, list[str]] = {}
    for server in servers:
        cause = _Attempt(server, options, has_key).cause()
        if cause is None:
            return
        causes.setdefault(cause, []).append(server)
    raise ClusterError("; ".join(f"{', '.join(some)}: {cause}" for cause, some in causes.items()))


class _Attempt:
    """One attempt to connect to a server: network, TLS, first answer, login, first question."""

    def __init__(self, server: str, options: Mapping[str, Any], has_key: bool) -> None:
        self.server, self.options, self.has_key = server, options, has_key
        self.host, self.port = address(server)

    @property
    def protocol(self) -> str:
        return str(self.options.get("security_protocol", "PLAINTEXT"))

    def cause(self) -> str | None:
        """Return why the server cannot be used; None if it can."""
        return self._network() or self._kafka()

    def _network(self) -> str | None:
        try:
            with socket.create_connection((self.host, self.port), CONNECT_SECONDS):
                return None
        except socket.gaierror as error:
            return f"unknown host {self.host}: {(error.strerror or str(error)).lower()}"
        except ConnectionRefusedError:
            return f"nothing listens on port {self.port}: connection refused"
        except TimeoutError:
            return f"no answer within {CONNECT_SECONDS:.0f} s: a firewall, or another address?"
        except OSError as error:
            return f"cannot be connected to: {error.strerror or error}"

    def _kafka(self) -> str | None:
        connection = BrokerConnection(self.host, self.port, self.options, CONNECT_SECONDS)
        try:
            with connection:
                if not connection.knows(METADATA):
                    return NO_BROKER
                if connection.takes(METADATA):
                    connection.ask(METADATA, NO_TOPIC)
        except (OSError, ClusterError) as error:
            return self._in_words(error, connection)
        return None

    def _in_words(self, error: Exception, connection: BrokerConnection) -> str:
        said = str(error)
        for sign, words in TLS_CAUSES:
            if sign in said:
                certificate = REFUSED if self.has_key else MISSED
                return words.format(said=_reason(said), host=self.host, certificate=certificate)
        if not connection.is_secured:
            return NOT_TLS
        if not connection.has_answered:
            return self._without_answer(error, said)
        if isinstance(error, LoginError) and error.code in LOGIN_CAUSES:
            return LOGIN_CAUSES[error.code]
        if isinstance(error, ClusterError) and not isinstance(error, LoginError):
            return error.problem
        if not connection.is_logged_in:
            user, mechanism = self.options.get("sasl_plain_username"), self.options.get("sasl_mechanism")
            return (
                f"the broker refuses the login{f' of {user!r}' if user else ''} by {mechanism}: wrong user name or "
                "password, or a mechanism that it does not take"
            )
        if not self.protocol.startswith("SASL"):
            return "the broker answers, but not without a login: set security.protocol, sasl.mechanism and the login"
        return f"the broker ends the connection: {said}"

    def _without_answer(self, error: Exception, said: str) -> str:
        if "SSL" not in self.protocol and _speaks_tls(self.host, self.port):
            wanted = "SASL_SSL" if self.protocol.startswith("SASL") else "SSL"
            return f"the port speaks TLS, and the client does not: set security.protocol={wanted}"
        if isinstance(error, TimeoutError):
            return "it takes the connection and does not answer: it hangs, or is no Kafka broker"
        return f"it answers, but not as a Kafka broker does: {said}"


NO_BROKER = (
    "it takes no questions about topics, as a KRaft controller's port does not: give a port of a broker's own listeners"
)
NOT_TLS = (
    "the port does not speak TLS, and the client does: set security.protocol=PLAINTEXT or SASL_PLAINTEXT, or another "
    "port"
)
NO_CERTIFICATE = "{certificate} ({said})"
MISSED = "the broker asks for a client's certificate: set ssl.keystore.location to a store with its key"
REFUSED = "the broker does not accept the client's certificate, which ssl.keystore.location names"
TLS_CAUSES = (
    ("ALERT_BAD_CERTIFICATE", NO_CERTIFICATE),
    ("CERTIFICATE_REQUIRED", NO_CERTIFICATE),
    ("ALERT_CERTIFICATE", NO_CERTIFICATE),
    ("ALERT_UNKNOWN_CA", NO_CERTIFICATE),
    ("ALERT_HANDSHAKE_FAILURE", "no cipher, TLS version or certificate that both sides take ({said})"),
    ("ALERT_PROTOCOL_VERSION", "no TLS version that both sides take ({said})"),
    (
        "mismatch",
        "the broker's certificate is not of {host}; ssl.endpoint.identification.algorithm= lets it pass",
    ),
    ("CERTIFICATE_VERIFY_FAILED", "the broker's certificate is not trusted, ssl.truststore.location: {said}"),
    ("UNEXPECTED_EOF", NOT_TLS),
    ("WRONG_VERSION_NUMBER", NOT_TLS),
    ("[SSL", "TLS fails: {said}"),
)
"""Part of OpenSSL's error → the cause; the first match counts."""

LOGIN_CAUSES = {
    ILLEGAL_SASL_STATE: "the port wants no login, and the client does: set security.protocol without SASL",
    UNSUPPORTED_SASL_MECHANISM: "the broker does not take the mechanism of sasl.mechanism",
}


def _reason(said: str) -> str:
    """Return OpenSSL's message without the place in its source."""
    return said.rpartition("] ")[2].rpartition(" (_ssl")[0] or said


def _speaks_tls(host: str, port: int) -> bool:
    """Return whether a port answers a TLS greeting with TLS, even if it refuses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(OSError), socket.create_connection((host, port), CONNECT_SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=host):
                return True
        except ssl.SSLError as error:
            return "ALERT" in str(error)
    return False
