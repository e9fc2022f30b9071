"""Logs, metrics and traces tell ids, sizes and times; what a caller said or is called never gets in."""

import asyncio
import io
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memdock.callers import DEVELOPMENT_KEY
from memdock.face import Served
from memdock.service import METHODS, Call
from memdock_gateway.exchange import Exchange
from memdock_gateway.lanes import Lane
from memdock_gateway.log import set_up_logs
from memdock_gateway.metrics import Metrics
from memdock_gateway.observe import Observer
from memdock_gateway.tracing import CollectedTraces, NoTraces

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = CALLER[:-1] + "0"

Log = Callable[[], list[dict[str, Any]]]


def finished(trace_parent: str = "") -> Exchange:
    exchange = Exchange(method="Retrieve", request_id="r1", trace_parent=trace_parent)
    exchange.key = replace(DEVELOPMENT_KEY, tenant="acme", key_id="k1")
    exchange.system = "rag"
    exchange.upstream_s, exchange.queue_s, exchange.retries = 0.002, 0.001, 2
    return exchange


def served(reason: str = "") -> Served:
    return Served(
        method="Retrieve",
        face="http",
        request_id="r1",
        reason=reason,
        elapsed_ms=5.0,
        request_bytes=10,
        answer_bytes=20,
    )


@pytest.fixture
def log() -> Log:
    file = io.BytesIO()
    lines = set_up_logs(file)

    def read() -> list[dict[str, Any]]:
        if lines._lines:
            lines.write_out()
        return [orjson.loads(line) for line in file.getvalue().splitlines()]

    return read


async def test_a_call_is_one_line_of_ids_and_times(log: Log) -> None:
    observer = Observer(Metrics({}), NoTraces())
    for reason in ("", "QUEUE_FULL", "CANCELLED", "A_NEWER_ONE"):
        observer.end(finished(), served(reason))
    assert log() == [], "told after the answers are on their way"
    observer.tell()
    lines = log()
    assert [line["code"] for line in lines] == ["OK", "RESOURCE_EXHAUSTED", "CANCELLED", "UNKNOWN"]
    assert [line["reason"] for line in lines] == ["", "QUEUE_FULL", "CANCELLED", "A_NEWER_ONE"]
    first = lines[0]
    assert (first["method"], first["system"], first["tenant"], first["key_id"]) == ("Retrieve", "rag", "acme", "k1")
    assert (first["total_ms"], first["own_ms"], first["request_bytes"], first["answer_bytes"]) == (5.0, 2.0, 10, 20)
    assert first["timestamp"].endswith("+00:00")


async def test_calls_are_told_together_soon_after_with_the_time_of_their_end(log: Log) -> None:
    observer = Observer(Metrics({}), NoTraces())
    observer.end(finished(), served())
    ended = datetime.now(UTC)
    observer.end(finished(), served())
    await asyncio.sleep(0.25)
    lines = log()
    assert len(lines) == 2
    assert all(abs(datetime.fromisoformat(line["timestamp"]) - ended) < timedelta(milliseconds=15) for line in lines)


def test_a_librarys_words_stay_out_of_the_log(log: Log) -> None:
    try:
        raise ValueError("a secret turn")
    except ValueError:
        logging.getLogger("library").exception("a secret turn")
    (line,) = log()
    assert (line["event"], line["logger"], line["problem"]) == ("library", "library", "ValueError")
    assert "secret" not in str(line)


async def test_metrics_count_by_system_method_and_code(log: Log) -> None:
    metrics = Metrics({"rag": Lane(concurrency=1, queue=1)})
    observer = Observer(metrics, NoTraces())
    for reason in ("", "", "STORE_UNREACHABLE"):
        observer.end(finished(), served(reason))
    text = observer.metrics().decode()
    assert 'memdock_gateway_calls_total{code="OK",method="Retrieve",system="rag"} 2.0' in text
    assert 'memdock_gateway_calls_total{code="UNAVAILABLE",method="Retrieve",system="rag"} 1.0' in text
    assert 'memdock_gateway_retries_total{method="Retrieve",system="rag"} 6.0' in text
    assert 'memdock_gateway_call_seconds_count{method="Retrieve",system="rag"} 3.0' in text
    assert 'memdock_gateway_calls_inside{system="rag"} 0.0' in text
    assert 'memdock_gateway_calls_waiting{system="rag"} 0.0' in text


async def test_a_span_is_a_child_of_the_callers_and_the_next_hop_gets_it(log: Log) -> None:
    exporter = InMemorySpanExporter()
    traces = CollectedTraces(exporter, sample_ratio=0)
    observer = Observer(Metrics({}), traces)
    exchange = observer.begin(METHODS["Retrieve"], Call(request_id="r1", trace_parent=CALLER))
    exchange.system = "rag"
    observer.end(exchange, served("STORE_UNREACHABLE"))
    observer.close()
    (span,) = exporter.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == CALLER[3:35]
    assert span.parent
    assert f"{span.parent.span_id:016x}" == CALLER[36:52]
    assert exchange.trace_parent == f"00-{CALLER[3:35]}-{span.context.span_id:016x}-01"
    assert span.attributes
    assert span.attributes["memdock.system"] == "rag"
    assert span.attributes["memdock.reason"] == "STORE_UNREACHABLE"


@pytest.mark.parametrize(
    ("trace_parent", "sample_ratio", "spans"),
    [(UNSAMPLED, 1, 0), ("", 1, 1), ("", 0, 0), ("garbage", 1, 1), ("00-" + "0" * 32 + "-" + "0" * 16 + "-01", 1, 1)],
)
def test_the_callers_flag_decides_and_the_ratio_where_there_is_none(
    trace_parent: str, sample_ratio: float, spans: int
) -> None:
    exporter = InMemorySpanExporter()
    traces = CollectedTraces(exporter, sample_ratio)
    exchange = finished(trace_parent)
    traces.begin(exchange)
    if exchange.span is not None:
        exchange.span.end()
    traces.close()
    assert len(exporter.get_finished_spans()) == spans
    if spans:
        assert int(exchange.trace_parent[-2:], 16) & 1 == 1
    else:
        assert exchange.trace_parent == trace_parent


def test_without_a_collector_the_callers_trace_goes_on_as_it_came() -> None:
    exchange = finished(CALLER)
    NoTraces().begin(exchange)
    assert (exchange.trace_parent, exchange.span) == (CALLER, None)
