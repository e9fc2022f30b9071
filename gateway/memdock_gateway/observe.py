"""One finished call becomes a log line, three metrics and, where sampled, a span."""

import structlog
from opentelemetry.trace import Span

from memdock.errors import MemdockError
from memdock_gateway.exchange import Exchange
from memdock_gateway.metrics import Metrics
from memdock_gateway.tracing import Traces, end_span

CODES = {
    0: "OK",
    1: "CANCELLED",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    10: "ABORTED",
    12: "UNIMPLEMENTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    16: "UNAUTHENTICATED",
}


class Observer:
    """Tells what happened."""

    def __init__(self, metrics: Metrics, traces: Traces) -> None:
        self._metrics = metrics
        self._traces = traces
        self._log = structlog.get_logger()

    def begin(self, exchange: Exchange) -> Span | None:
        """Opens the call's span, which `end` wants back."""
        return self._traces.begin(exchange)

    def end(self, exchange: Exchange, span: Span | None, problem: BaseException | None) -> None:
        """The call is over: answered (`None`), refused or failed (the error), or its caller has left."""
        code, reason = _code(problem)
        total_s = exchange.total_s()
        own_s = max(0.0, total_s - exchange.queue_s - exchange.upstream_s)
        self._metrics.count(exchange, code, total_s, own_s)
        self._log.info(
            "call",
            method=exchange.method.name,
            system=exchange.system,
            face=exchange.face,
            code=code,
            reason=reason,
            tenant=exchange.tenant,
            key_id=exchange.key_id,
            request_id=exchange.request_id,
            total_ms=round(total_s * 1000, 3),
            own_ms=round(own_s * 1000, 3),
            retries=exchange.retries,
        )
        if span is not None:
            end_span(span, exchange, code, reason)


def _code(problem: BaseException | None) -> tuple[str, str]:
    if problem is None:
        return "OK", ""
    if isinstance(problem, MemdockError):
        return CODES[problem.code], problem.reason
    return ("INTERNAL", "INTERNAL") if isinstance(problem, Exception) else ("CANCELLED", "CANCELLED")
