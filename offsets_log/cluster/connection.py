"""Connect to a cluster through kafka-python, the only way to the network, and retry or give up.

kafka-python (extra ``restore``) is used because confluent-kafka 2.16 commits metadata with a NUL appended, and refuses
some groups.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from offsets_log.cluster.causes import reach
from offsets_log.cluster.properties import client_options, patience_seconds
from offsets_log.cluster.stores import has_key
from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.words import to_install

PATIENCE_SECONDS = 60.0
"""How long a broker that does not answer is asked again, per question; coordinators that are not ready, in total."""
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.1, 3.0
RECONNECT_MS = 500


class Connection:
    """A connection; close it after use.

    Raises:
        ClusterError: no server can be reached, with the reasons; ``ask`` raises it too.
        InputError: a property makes no sense.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str]) -> None:
        try:
            from kafka.admin import KafkaAdminClient
        except ImportError:
            raise ClusterError(f"kafka-python is not installed: {to_install('restore')}") from None
        logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)  # its errors are raised as exceptions too
        options = client_options(properties)
        self.servers = bootstrap_servers
        self._patience = patience_seconds(properties, PATIENCE_SECONDS)
        self._patience_with_coordinators = self._patience
        servers = [server.strip() for server in bootstrap_servers.split(",") if server.strip()]
        reach(servers, options, has_key=has_key(properties))
        with self._errors(""):
            self.admin = KafkaAdminClient(
                bootstrap_servers=servers,
                bootstrap_timeout_ms=self._patience * 1000,
                reconnect_backoff_max_ms=RECONNECT_MS,
                **options,
            )

    def ask(self, question: Callable[[], Any], about: str = "") -> Any:
        """Return the answer to a question; retry while a coordinator is being found or created, or a broker is away.

        Args:
            about: what the question is about, for error messages.

        Raises:
            ClusterLostError: no broker answers before the patience ends.
            ClusterError: the answer is an error, or a coordinator never becomes ready.
        """
        since, pause = time.monotonic(), FIRST_PAUSE_SECONDS
        while True:
            with self._errors(about):
                try:
                    return question()
                except coordinator_errors():
                    if self._patience_with_coordinators <= 0:
                        raise
                    self._patience_with_coordinators -= pause
                except _lost_errors() as error:
                    if time.monotonic() - since >= self._patience:
                        raise ClusterLostError(
                            f"{self.servers}: no answer for {self._patience:.0f} s: {in_words(error)}"
                        ) from None
            self.admin._manager.cluster._coordinators.clear()  # the coordinator may have moved
            time.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, LAST_PAUSE_SECONDS)

    def close(self) -> None:
        """Close the connection."""
        self.admin.close()

    @contextmanager
    def _errors(self, about: str) -> Iterator[None]:
        from kafka.errors import KafkaError

        try:
            yield
        except (KafkaError, OSError, ValueError, TypeError, AssertionError) as error:
            raise ClusterError(f"{self.servers}: {about}{in_words(error)}") from error


def coordinator_errors() -> tuple[type[Exception], ...]:
    """Return the errors of coordinators that pass by themselves."""
    from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError

    return CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError


def _lost_errors() -> tuple[type[Exception], ...]:
    """Return the errors of brokers that went away, or of partitions whose leader did."""
    from kafka import errors

    return (
        RuntimeError,  # kafka-python raises it for a request whose connection ends
        errors.Cancelled,
        errors.CorrelationIdError,
        errors.KafkaConnectionError,
        errors.KafkaTimeoutError,
        errors.LeaderNotAvailableError,
        errors.MetadataEmptyBrokerList,
        errors.NetworkExceptionError,
        errors.NodeNotReadyError,
        errors.NotLeaderForPartitionError,
        errors.RequestTimedOutError,
        errors.StaleMetadata,
        errors.UnknownBrokerIdError,
    )


def in_words(error: Any) -> str:
    """Return a kafka-python error, class or object, as its name and message."""
    if isinstance(error, type):
        return f"{error.__name__}: {getattr(error, 'description', '') or getattr(error, 'message', '')}".rstrip(": ")
    said = str(error)
    return said if type(error).__name__ in said else f"{type(error).__name__}: {said}".rstrip(": ")
