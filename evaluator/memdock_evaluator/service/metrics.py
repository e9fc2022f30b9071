"""Prometheus metrics in a registry of the service's own. Labels: route, status, state; never a tenant, key or run."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """Counts requests and runs. `running` and `watching` are asked when the metrics are."""

    def __init__(self, *, running: Callable[[], float], watching: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "memdock_eval_requests", "Requests answered", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "memdock_eval_request_seconds",
            "From a request to the beginning of its answer",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._runs = Counter("memdock_eval_runs_ended", "Attempts that ended here", ["state"], registry=self._registry)
        self._taken_over = Counter(
            "memdock_eval_runs_taken_over", "Attempts taken over from another replica", registry=self._registry
        )
        inside = Gauge("memdock_eval_runs_running", "Runs that are carried out here", registry=self._registry)
        inside.set_function(running)
        watchers = Gauge("memdock_eval_watching", "Clients that follow a run here", registry=self._registry)
        watchers.set_function(watching)

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request was answered, or its answer has begun."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def run_ended(self, state: str) -> None:
        """An attempt has ended here."""
        self._runs.labels(state).inc()

    def run_taken_over(self) -> None:
        """An attempt was taken over."""
        self._taken_over.inc()

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)
