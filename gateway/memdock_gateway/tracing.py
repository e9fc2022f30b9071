"""OpenTelemetry traces: one span a call, without content, handed to a collector; the caller's trace goes on.

Without a collector nothing is recorded and a caller's `traceparent` is passed on as it came.
"""

import random
import re
from datetime import datetime
from typing import Protocol

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from memdock_gateway.config import Telemetry
from memdock_gateway.exchange import Exchange

# With its retries; the end of the process waits for the last batch.
EXPORT_TIMEOUT_S = 2

_TRACE_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class Traces(Protocol):
    """Makes spans, or does not."""

    def begin(self, exchange: Exchange) -> None:
        """Sets `exchange.trace_parent` for the next hop, and `exchange.span` where the call is recorded."""

    def close(self) -> None:
        """Sends what is left."""


class NoTraces:
    """For a gateway without a collector."""

    def begin(self, exchange: Exchange) -> None:
        """The caller's `traceparent` stays as it came."""

    def close(self) -> None:
        """Nothing is left."""


class CollectedTraces:
    """Spans for a collector."""

    def __init__(self, exporter: SpanExporter, sample_ratio: float) -> None:
        self._sample_ratio = sample_ratio
        self._provider = TracerProvider(
            sampler=ALWAYS_ON, resource=Resource.create({"service.name": "memdock-gateway"})
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("memdock_gateway")

    def begin(self, exchange: Exchange) -> None:
        """A child of the caller's span, sampled as the caller says; else a new trace, sampled by the ratio.

        What is not sampled never reaches the library, which would make and drop a span; a caller's own unsampled
        trace goes on as it came.
        """
        parent = _parent(exchange.trace_parent) if exchange.trace_parent else None
        if not (parent.trace_flags.sampled if parent else random.random() < self._sample_ratio):  # noqa: S311
            return
        context = trace.set_span_in_context(NonRecordingSpan(parent)) if parent else None
        exchange.span = span = self._tracer.start_span(exchange.method, context, SpanKind.SERVER)
        own = span.get_span_context()
        exchange.trace_parent = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"

    def close(self) -> None:
        """Sends the spans that wait in the batch."""
        self._provider.shutdown()


def end_span(span: Span, exchange: Exchange, *, face: str, code: str, reason: str, ended_at: datetime) -> None:
    """Closes the span with the call's ids, times and outcome."""
    span.set_attributes(
        {
            "rpc.method": exchange.method,
            "memdock.face": face,
            "memdock.system": exchange.system,
            "memdock.request_id": exchange.request_id,
            "memdock.retries": exchange.retries,
            "memdock.queue_ms": exchange.queue_s * 1000,
            "memdock.upstream_ms": exchange.upstream_s * 1000,
            "rpc.response.status_code": code,
        }
    )
    if reason:
        span.set_attribute("memdock.reason", reason)
        span.set_status(Status(StatusCode.ERROR))
    span.end(round(ended_at.timestamp() * 1e9))


def open_traces(telemetry: Telemetry) -> Traces:
    """What the configuration asks for."""
    if telemetry.otlp_endpoint is None:
        return NoTraces()
    exporter = OTLPSpanExporter(telemetry.otlp_endpoint.rstrip("/") + "/v1/traces", timeout=EXPORT_TIMEOUT_S)
    return CollectedTraces(exporter, telemetry.sample_ratio)


def _parent(trace_parent: str) -> SpanContext | None:
    found = _TRACE_PARENT.fullmatch(trace_parent)
    if not found:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    parent = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return parent if parent.is_valid else None
