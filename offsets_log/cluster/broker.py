"""A connection to one broker: requests of `protocol`, over plain sockets or TLS, after a login where one is asked for.

Everything that a broker sends is bounded before room is made for it. Messages of logins come from kafka-python (extra
``restore``), which knows all mechanisms; without a login nothing but Python is needed.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

from offsets_log.errors import ClusterError, CorruptRecordError
from offsets_log.protocol.api import SIZE_BYTES, Api, Header
from offsets_log.protocol.api_versions import API_VERSIONS
from offsets_log.protocol.error_codes import NO_ERROR, UNSUPPORTED_VERSION, name_of
from offsets_log.protocol.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from offsets_log.words import to_install

CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 30.0
"""By default, as in Kafka's clients; ``request.timeout.ms`` says otherwise."""
MOST_RESPONSE_BYTES = 256 << 20
"""No broker sends more: ``fetch.max.bytes`` is 55 MiB, and only one batch alone may be larger."""
MOST_STEPS = 10
"""Of a login."""
SOFTWARE = {
    "client_software_name": "offsets-log",
    "client_software_version": "1",
    "cluster_id": None,  # whichever this one is of
    "node_id": -1,
}
CLIENT_ID = "offsets-log"
NOT_TAKEN = (0, -1)
INT16_MAX = (1 << 15) - 1


class NotAKafkaBrokerError(ClusterError):
    """What answers does not speak Kafka's protocol, or breaks it."""


class LoginError(ClusterError):
    """A broker refuses a login, or takes no login or not this one.

    Attributes:
        code: Kafka's error code; `NO_ERROR` where the login's own messages fail.
    """

    def __init__(self, problem: str, code: int = NO_ERROR) -> None:
        super().__init__(problem)
        self.code = code


class BrokerConnection:
    """A connection; close it after use. One thread at a time may ask.

    Attributes:
        is_secured: whether TLS, where it is asked for, has begun.
        has_answered: whether the broker has said which versions it takes.
        is_logged_in: whether it takes requests.
    """

    def __init__(self, host: str, port: int, options: Mapping[str, Any], connect_seconds: float = CONNECT_SECONDS):
        """Remember where to connect to; `open` does it.

        Args:
            options: as `properties.client_options` makes them.
        """
        self.host, self.port = host, port
        self.is_secured = self.has_answered = self.is_logged_in = False
        self._options = options
        self._connect_seconds = connect_seconds
        self._seconds = options.get("request_timeout_ms", REQUEST_SECONDS * 1000) / 1000
        self._client_id = str(options.get("client_id", CLIENT_ID))
        self._versions: dict[int, tuple[int, int]] = {}
        self._socket: socket.socket | None = None
        self._closing, self._asking = threading.Lock(), threading.Lock()
        self._buffer = bytearray()
        self._next_id = 0

    @property
    def protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return str(self._options.get("security_protocol", "PLAINTEXT"))

    def open(self) -> Self:
        """Connect, ask for versions, and log in.

        Raises:
            OSError: the network or TLS fails, or the broker closes the connection.
            ClusterError: what answers is no Kafka broker, or refuses the login.
        """
        try:
            plain = socket.create_connection((self.host, self.port), self._connect_seconds)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = plain
            if "SSL" in self.protocol:
                context: ssl.SSLContext = self._options["ssl_context"]
                self._socket = context.wrap_socket(plain, server_hostname=self.host)
            self.is_secured = True
            self._learn_versions()
            if self.protocol.startswith("SASL"):
                self._log_in()
            self.is_logged_in = True
            self._socket.settimeout(self._seconds)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Close the connection; from another thread this ends what is being asked."""
        with self._closing:
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
                self._socket.close()
                self._socket = None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def knows(self, api: Api) -> bool:
        """Whether the broker takes any version."""
        return api.key in self._versions

    def takes(self, api: Api) -> bool:
        """Whether there is a version that both sides know."""
        return api.newest_of(*self._versions.get(api.key, NOT_TAKEN)) is not None

    def version_of(self, api: Api, newest: int = INT16_MAX) -> int:
        """Return the newest version, up to one, that both sides know. Raises ClusterError if there is none."""
        first, last = self._versions.get(api.key, NOT_TAKEN)
        found = api.newest_of(first, min(last, newest))
        if found is None:
            told = f"it takes versions {first} to {last}" if last >= 0 else "it does not take it"
            raise ClusterError(
                f"{self.host}:{self.port}: no version of {api.name} that both sides know: {told}; "
                f"{api.versions[0]} to {api.versions[1]} are known here"
            )
        return found

    def ask(self, api: Api, body: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
        """Send a request and return the response; one thread at a time.

        Args:
            version: the newest that both sides know, unless it is given.

        Raises:
            OSError: the connection ends, or the answer takes too long.
            ClusterError: the answer breaks the protocol; the connection is closed then.
        """
        if version is None:
            version = self.version_of(api)
        with self._asking:
            return self._ask(api, body, version)

    def _ask(self, api: Api, body: Mapping[str, Any], version: int) -> dict[str, Any]:
        self._next_id += 1
        header = Header(api.key, version, self._next_id, self._client_id)
        if self._socket is None:
            raise ConnectionError("the connection is closed")
        self._socket.sendall(api.encode_request(header, body))
        try:
            answered, response = api.decode_response(version, self._receive())
        except CorruptRecordError as error:
            self.close()
            raise NotAKafkaBrokerError(f"{self.host}:{self.port}: {error}") from None
        if answered != self._next_id:
            self.close()
            raise NotAKafkaBrokerError(f"{self.host}:{self.port} answers a request that was not sent")
        return response

    def _receive(self) -> bytes:
        """Return a frame without its size."""
        size = int.from_bytes(self._read(SIZE_BYTES), signed=True)
        if not SIZE_BYTES <= size <= MOST_RESPONSE_BYTES:
            self.close()
            raise NotAKafkaBrokerError(f"{self.host}:{self.port} announces a response of {size} bytes")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        """Return so many bytes; room for them is made as they come."""
        assert self._socket is not None
        at = 0
        while at < size:
            if at == len(self._buffer):
                self._buffer.extend(bytes(min(size, max(2 * at, FIRST_ROOM)) - at))
            with memoryview(self._buffer) as view:
                count = self._socket.recv_into(view[at : min(size, len(view))])
            if not count:
                raise ConnectionResetError("the broker has closed the connection")
            at += count
        with memoryview(self._buffer) as view:
            return bytes(view[:size])

    # ------------------------------------------------------------------------------------- the first requests

    def _learn_versions(self) -> None:
        version = API_VERSIONS.versions[1]
        answer = self.ask(API_VERSIONS, SOFTWARE, version)
        if answer["error_code"] == UNSUPPORTED_VERSION:
            known = {row["api_key"]: (row["min_version"], row["max_version"]) for row in answer["api_keys"]}
            newest = API_VERSIONS.newest_of(*known.get(API_VERSIONS.key, (0, 0)))
            answer = self.ask(API_VERSIONS, SOFTWARE, newest or 0)
        if answer["error_code"] != NO_ERROR:
            raise LoginError(f"the broker answers {name_of(answer['error_code'])}", answer["error_code"])
        self._versions = {row["api_key"]: (row["min_version"], row["max_version"]) for row in answer["api_keys"]}
        self.has_answered = True

    def _log_in(self) -> None:
        name = self._options["sasl_mechanism"]
        answer = self.ask(SASL_HANDSHAKE, {"mechanism": name})
        if answer["error_code"] != NO_ERROR:
            raise LoginError(_refused(name, answer["mechanisms"]), answer["error_code"])
        try:
            self._exchange(_mechanism(name, self.host, self._options))
        except (ImportError, RuntimeError) as error:  # a mechanism needs a library that is missing
            raise ClusterError(str(error)) from None

    def _exchange(self, mechanism: Any) -> None:
        for _ in range(MOST_STEPS):
            if mechanism.is_done():
                return
            said = self.ask(SASL_AUTHENTICATE, {"auth_bytes": mechanism.auth_bytes()})
            if said["error_code"] != NO_ERROR:
                raise LoginError(said["error_message"] or name_of(said["error_code"]), said["error_code"])
            try:
                mechanism.receive(said["auth_bytes"])
            except (ValueError, LookupError) as error:
                raise LoginError(f"the broker's part of the login makes no sense: {error}") from None
        raise LoginError("the login does not end")


FIRST_ROOM = 1 << 16


def _refused(name: str, taken: Sequence[str]) -> str:
    return f"the broker does not take {name}, but {', '.join(taken) or 'no mechanism'}"


def _mechanism(name: str, host: str, options: Mapping[str, Any]) -> Any:
    """Return kafka-python's side of a login."""
    try:
        from kafka.net.sasl import get_sasl_mechanism
    except ImportError:
        raise ClusterError(f"a login by SASL needs kafka-python: {to_install('restore')}") from None
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)  # what it says is raised too
    defaults = {"sasl_kerberos_name": None, "sasl_kerberos_service_name": "kafka", "sasl_kerberos_domain_name": None}
    return get_sasl_mechanism(name)(host=host, **(defaults | dict(options)))
