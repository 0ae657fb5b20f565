"""``--metrics-port``: metrics for Prometheus, made when they are asked for of what a run holds at that moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from offsets_log.errors import InputError
from offsets_log.following.metrics import COUNTER, Metric, Sample
from offsets_log.words import to_install

EXTRA = f"--metrics-port needs prometheus_client: {to_install('metrics')}"


@contextmanager
def serving(
    host: str, port: int, samples: Callable[[], Iterable[Sample]], say: Callable[[str], None]
) -> Iterator[None]:
    """Serve metrics for as long as the context lasts.

    Args:
        samples: all that there are now; called by another thread for each request.
        say: told where they are.

    Raises:
        InputError: the library is missing, or the port cannot be had.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ImportError:
        raise InputError(EXTRA) from None

    class State:
        """A collector, in the words of the library."""

        def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
            """Yield each metric that has samples."""
            families: dict[Metric, CounterMetricFamily | GaugeMetricFamily] = {}
            for metric, labels, value in samples():
                if metric not in families:
                    family = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
                    name = metric.shown_name.removesuffix("_total")
                    families[metric] = family(name, metric.means, labels=metric.labels)
                families[metric].add_metric([_label(label) for label in labels], value)
            return iter(families.values())

    registry = CollectorRegistry(auto_describe=False)
    registry.register(State())
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise InputError(f"--metrics-port {host}:{port}: {error.strerror or error}") from None
    try:
        shown = f"[{host}]" if ":" in host else host
        say(f"metrics: http://{shown}:{server.server_port}/metrics")
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _label(value: object) -> str:
    """Return a label; what is not known is empty, and what is no Unicode is replaced."""
    return "" if value is None else str(value).encode("utf-8", "replace").decode()
