"""Logs, metrics and traces tell ids, sizes and times; what a caller said or is called never gets in."""

import asyncio
import io
import logging

import orjson
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memdock.errors import error
from memdock.service import METHODS
from memdock_gateway.exchange import Exchange
from memdock_gateway.lanes import Lane
from memdock_gateway.log import fault, set_up_logs
from memdock_gateway.metrics import Metrics
from memdock_gateway.observe import Observer
from memdock_gateway.tracing import CollectedTraces, NoTraces

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = CALLER[:-1] + "0"


def finished(trace_parent=""):
    exchange = Exchange(method=METHODS["Retrieve"], face="http", request_id="r1", trace_parent=trace_parent)
    exchange.tenant, exchange.key_id, exchange.system = "acme", "k1", "rag"
    exchange.upstream_s, exchange.queue_s, exchange.retries = 0.002, 0.001, 2
    return exchange


@pytest.fixture
def log():
    file = io.BytesIO()
    lines = set_up_logs(file)

    def read():
        if lines._lines:
            lines.write_out()
        return [orjson.loads(line) for line in file.getvalue().splitlines()]

    return read


def test_a_call_is_one_line_of_ids_and_times(log):
    observer = Observer(Metrics({}), NoTraces())
    observer.end(finished(), None, None)
    observer.end(finished(), None, error("QUEUE_FULL", "words", retry_after_s=1))
    observer.end(finished(), None, asyncio.CancelledError())
    observer.end(finished(), None, ValueError("words"))
    lines = log()
    assert [line["code"] for line in lines] == ["OK", "RESOURCE_EXHAUSTED", "CANCELLED", "INTERNAL"]
    assert [line["reason"] for line in lines] == ["", "QUEUE_FULL", "CANCELLED", "INTERNAL"]
    first = lines[0]
    assert (first["method"], first["system"], first["tenant"], first["key_id"]) == ("Retrieve", "rag", "acme", "k1")
    assert first["timestamp"].endswith("Z")
    assert "words" not in str(lines)


async def test_lines_are_gathered_and_written_soon(log):
    Observer(Metrics({}), NoTraces()).end(finished(), None, None)
    await asyncio.sleep(0.25)
    assert len(log()) == 1


def test_an_exceptions_words_stay_out_of_the_log(log):
    try:
        raise ValueError("a secret turn")
    except ValueError as problem:
        told = fault(problem)
        logging.getLogger("library").exception("a secret turn")
    assert told["problem"] == "ValueError"
    assert "test_gateway_observe.py" in told["trace"][-1]
    (line,) = log()
    assert (line["event"], line["logger"], line["problem"]) == ("library", "library", "ValueError")
    assert "secret" not in str(line)


def test_metrics_count_by_system_method_and_code(log):
    metrics = Metrics({"rag": Lane(concurrency=1, queue=1)})
    observer = Observer(metrics, NoTraces())
    for problem in (None, None, error("STORE_UNREACHABLE", "away")):
        observer.end(finished(), None, problem)
    text = metrics.render().decode()
    assert 'memdock_gateway_calls_total{code="OK",method="Retrieve",system="rag"} 2.0' in text
    assert 'memdock_gateway_calls_total{code="UNAVAILABLE",method="Retrieve",system="rag"} 1.0' in text
    assert 'memdock_gateway_retries_total{method="Retrieve",system="rag"} 6.0' in text
    assert 'memdock_gateway_call_seconds_count{method="Retrieve",system="rag"} 3.0' in text
    assert 'memdock_gateway_calls_inside{system="rag"} 0.0' in text
    assert 'memdock_gateway_calls_waiting{system="rag"} 0.0' in text


def test_a_span_is_a_child_of_the_callers_and_the_next_hop_gets_it(log):
    exporter = InMemorySpanExporter()
    traces = CollectedTraces(exporter, sample_ratio=0)
    exchange = finished(CALLER)
    observer = Observer(Metrics({}), traces)
    observer.end(exchange, observer.begin(exchange), error("STORE_UNREACHABLE", "words"))
    traces.close()
    (span,) = exporter.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == CALLER[3:35]
    assert f"{span.parent.span_id:016x}" == CALLER[36:52]
    assert exchange.trace_parent == f"00-{CALLER[3:35]}-{span.context.span_id:016x}-01"
    assert span.attributes["memdock.system"] == "rag"
    assert span.attributes["memdock.reason"] == "STORE_UNREACHABLE"
    assert "words" not in span.to_json()


@pytest.mark.parametrize(
    ("trace_parent", "sample_ratio", "spans"),
    [(UNSAMPLED, 1, 0), ("", 1, 1), ("", 0, 0), ("garbage", 1, 1), ("00-" + "0" * 32 + "-" + "0" * 16 + "-01", 1, 1)],
)
def test_the_callers_flag_decides_and_the_ratio_where_there_is_none(trace_parent, sample_ratio, spans):
    exporter = InMemorySpanExporter()
    traces = CollectedTraces(exporter, sample_ratio)
    exchange = finished(trace_parent)
    span = traces.begin(exchange)
    if span is not None:
        span.end()
    traces.close()
    assert len(exporter.get_finished_spans()) == spans
    assert int(exchange.trace_parent[-2:], 16) & 1 == spans


def test_without_a_collector_the_callers_trace_goes_on_as_it_came():
    exchange = finished(CALLER)
    assert NoTraces().begin(exchange) is None
    assert exchange.trace_parent == CALLER
