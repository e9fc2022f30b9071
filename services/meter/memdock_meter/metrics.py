"""What `/metrics` tells: counts by system, kind and status, no model's or space's name."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from memdock_meter.store import CallRow

_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """A registry of its own, so that two meters in a process count apart."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("system", "kind")
        self._calls = Counter("memdock_meter_calls", "Calls answered", (*labels, "status"), registry=self._registry)
        self._requests = Counter("memdock_meter_requests", "Requests to endpoints", labels, registry=self._registry)
        self._tokens = Counter(
            "memdock_meter_tokens", "Tokens that were paid for", (*labels, "direction"), registry=self._registry
        )
        self._seconds = Histogram(
            "memdock_meter_seconds", "Time to an answer", labels, buckets=_BUCKETS_S, registry=self._registry
        )

    def count(self, row: CallRow) -> None:
        """Adds a call."""
        self._calls.labels(row.system, row.kind, row.status).inc()
        self._requests.labels(row.system, row.kind).inc(row.tries)
        self._seconds.labels(row.system, row.kind).observe(row.ms / 1000)
        if not row.replayed:
            self._tokens.labels(row.system, row.kind, "input").inc(row.input_tokens)
            self._tokens.labels(row.system, row.kind, "output").inc(row.output_tokens)

    def exposition(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self._registry)
