"""Prometheus metrics in a registry of the gateway's own. Labels: system, method, code; never a space or a key."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from memdock_gateway.exchange import Exchange
from memdock_gateway.lanes import Lane

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_OWN_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25)


class Metrics:
    """Counts and times finished calls."""

    def __init__(self, lanes: Mapping[str, Lane]) -> None:
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "memdock_gateway_calls", "Calls answered", ["system", "method", "code"], registry=self._registry
        )
        self._retries = Counter(
            "memdock_gateway_retries", "Tries after the first", ["system", "method"], registry=self._registry
        )
        self._seconds = Histogram(
            "memdock_gateway_call_seconds",
            "From the call's arrival to its answer",
            ["system", "method"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._own_seconds = Histogram(
            "memdock_gateway_own_seconds",
            "The gateway's own part: neither waiting for the system nor inside it",
            ["system", "method"],
            buckets=_OWN_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_LaneGauges(lanes))
        # Looking a child up by its labels takes a lock and a dozen checks; these are found once and kept.
        self._counts: dict[tuple[str, str, str], Counter] = {}
        self._times: dict[tuple[str, str], tuple[Histogram, Histogram]] = {}

    def count(self, exchange: Exchange, code: str, total_s: float, own_s: float) -> None:
        """One finished call; `code` by its gRPC name."""
        system, method = exchange.system, exchange.method
        counted = self._counts.get((system, method, code))
        if counted is None:
            counted = self._counts[system, method, code] = self._calls.labels(system, method, code)
        counted.inc()
        times = self._times.get((system, method))
        if times is None:
            labels = system, method
            times = self._times[labels] = self._seconds.labels(*labels), self._own_seconds.labels(*labels)
        times[0].observe(total_s)
        times[1].observe(own_s)
        if exchange.retries:
            self._retries.labels(system, method).inc(exchange.retries)

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)


class _LaneGauges(Collector):
    """Reads the lanes when asked, so that a call pays nothing."""

    def __init__(self, lanes: Mapping[str, Lane]) -> None:
        self._lanes = lanes

    def collect(self) -> Iterator[GaugeMetricFamily]:
        inside = GaugeMetricFamily("memdock_gateway_calls_inside", "Calls inside a system", labels=["system"])
        waiting = GaugeMetricFamily("memdock_gateway_calls_waiting", "Calls waiting for a system", labels=["system"])
        for name, lane in self._lanes.items():
            inside.add_metric([name], lane.inside)
            waiting.add_metric([name], lane.waiting)
        yield inside
        yield waiting
