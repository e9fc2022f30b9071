"""One served call becomes a log line, three metrics and, where sampled, a span."""

import asyncio
from datetime import UTC, datetime

import structlog

from memdock.errors import (
    REASONS,
    AbortedError,
    AlreadyExistsError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from memdock.face import CANCELLED, Served
from memdock.service import Call, Method
from memdock_gateway.exchange import Exchange
from memdock_gateway.metrics import Metrics
from memdock_gateway.tracing import Traces, end_span

_CODES = {
    InvalidArgumentError.code: "INVALID_ARGUMENT",
    UnauthenticatedError.code: "UNAUTHENTICATED",
    PermissionDeniedError.code: "PERMISSION_DENIED",
    NotFoundError.code: "NOT_FOUND",
    AlreadyExistsError.code: "ALREADY_EXISTS",
    AbortedError.code: "ABORTED",
    ResourceExhaustedError.code: "RESOURCE_EXHAUSTED",
    DeadlineExceededError.code: "DEADLINE_EXCEEDED",
    UnimplementedError.code: "UNIMPLEMENTED",
    UnavailableError.code: "UNAVAILABLE",
    InternalError.code: "INTERNAL",
}
_CODES_BY_REASON = {"": "OK", CANCELLED: CANCELLED} | {reason: _CODES[kind.code] for reason, kind in REASONS.items()}


# Cold code costs four times what it costs in a burst, and it would cost the answer's caller.
GATHER_S = 0.02


class Observer:
    """Tells what happened, a fiftieth of a second later: the calls that ended meanwhile are told in one go."""

    def __init__(self, metrics: Metrics, traces: Traces) -> None:
        self._metrics = metrics
        self._traces = traces
        self._ended: list[tuple[Exchange, Served, datetime]] = []
        # Bound once: the logger that `get_logger` gives is put together anew by each line.
        self._log = structlog.get_logger().bind()

    def begin(self, method: Method, call: Call) -> Exchange:
        """The record of a call that has just come in, with its span opened where it is sampled."""
        exchange = Exchange(method=method.name, request_id=call.request_id, trace_parent=call.trace_parent)
        self._traces.begin(exchange)
        return exchange

    def end(self, exchange: Exchange, served: Served) -> None:
        """The call is over: answered, refused, failed, or its caller has left."""
        if not self._ended:
            asyncio.get_running_loop().call_later(GATHER_S, self.tell)
        self._ended.append((exchange, served, datetime.now(UTC)))

    def tell(self) -> None:
        """Tells of every call that has ended since the last time."""
        ended, self._ended = self._ended, []
        for exchange, served, ended_at in ended:
            self._tell(exchange, served, ended_at)

    def metrics(self) -> bytes:
        """The text that Prometheus reads, up to the last call."""
        self.tell()
        return self._metrics.render()

    def close(self) -> None:
        """Tells what is left and sends the spans that wait in the batch."""
        self.tell()
        self._traces.close()

    def _tell(self, exchange: Exchange, served: Served, ended_at: datetime) -> None:
        # A reason that is newer than this gateway came from a system.
        code = _CODES_BY_REASON.get(served.reason, "UNKNOWN")
        total_s = served.elapsed_ms / 1000
        own_s = exchange.own_s(total_s)
        self._metrics.count(exchange, code, total_s, own_s)
        self._log.info(
            "call",
            timestamp=ended_at,
            method=exchange.method,
            system=exchange.system,
            face=served.face,
            code=code,
            reason=served.reason,
            tenant=exchange.tenant,
            key_id=exchange.key_id,
            request_id=exchange.request_id,
            total_ms=round(served.elapsed_ms, 3),
            own_ms=round(own_s * 1000, 3),
            request_bytes=served.request_bytes,
            answer_bytes=served.answer_bytes,
            retries=exchange.retries,
        )
        if exchange.span is not None:
            end_span(exchange.span, exchange, face=served.face, code=code, reason=served.reason, ended_at=ended_at)
