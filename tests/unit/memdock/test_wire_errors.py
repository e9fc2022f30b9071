"""The error table on both wires."""

import base64
from typing import Any

import orjson
import pytest
from google.rpc import error_details_pb2, status_pb2

from memdock import errors
from memdock.error_wire import (
    PROBLEM_TYPE,
    error_from_problem,
    error_from_status,
    error_from_trailers,
    error_trailers,
    problem,
    problem_headers,
    status_bytes,
)
from memdock.errors import REASONS, ConfigurationError, FieldError, MemdockError, error, sentence

NAME = "grpc://somewhere:1"
PROBLEM = {"content-type": PROBLEM_TYPE}


def facts(found: MemdockError) -> tuple[Any, ...]:
    return type(found), found.reason, found.message, found.fields, found.retry_after_s, found.code, found.http_status


def full(reason: str) -> MemdockError:
    fields = [FieldError("turns[3].text", "нельзя"), FieldError("x", "y")]
    return error(reason, "так не пойдёт", fields=fields, retry_after_s=1.25)


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_goes_over_both_wires(reason: str) -> None:
    sent = full(reason)
    assert facts(error_from_status(sent.code, status_bytes(sent), NAME)) == facts(sent)
    received = error_from_problem(sent.http_status, PROBLEM, problem(sent, "r1"), NAME)
    assert facts(received) == facts(sent)


@pytest.mark.parametrize("retried", [False, True])
def test_that_it_was_tried_again_goes_over_both_wires(retried: bool) -> None:
    sent = full("STORE_UNREACHABLE")
    sent.retried = retried
    trailers = [*error_trailers(sent), ("x-request-id", "r1")]
    assert (("grpc-retry-pushback-ms", "-1") in trailers) is retried
    assert facts(error_from_trailers(sent.code, trailers, NAME)) == facts(sent)
    assert error_from_trailers(sent.code, trailers, NAME).retried is retried
    assert error_from_problem(503, PROBLEM, problem(sent, "r1"), NAME).retried is retried


def test_a_problem_has_the_members_of_the_protocol() -> None:
    document = orjson.loads(problem(full("QUEUE_FULL"), "r1"))
    assert document == {
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "так не пойдёт",
        "reason": "QUEUE_FULL",
        "request_id": "r1",
        "errors": [{"field": "turns[3].text", "description": "нельзя"}, {"field": "x", "description": "y"}],
        "retry_after_s": 1.25,
    }
    assert problem_headers(full("QUEUE_FULL")) == [("content-type", PROBLEM_TYPE), ("retry-after", "2")]


def test_a_caller_without_a_key_is_told_the_scheme_and_a_wrong_verb_the_right_ones() -> None:
    assert ("www-authenticate", "Bearer") in problem_headers(error("CREDENTIAL_MISSING", "no key"))
    assert ("allow", "GET, POST") in problem_headers(errors.VerbError("no", ["GET", "POST"]))


@pytest.mark.parametrize(
    ("kind", "status"),
    [(kind, kind.http_status) for kind in dict.fromkeys(REASONS.values())],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_an_unknown_reason_of_a_newer_server_keeps_its_status(kind: type[MemdockError], status: int) -> None:
    sent = kind("BRAND_NEW", "later")
    assert error_from_status(sent.code, status_bytes(sent), NAME).code == sent.code
    received = error_from_problem(status, PROBLEM, problem(sent, ""), NAME)
    assert (received.reason, received.http_status // 100) == ("BRAND_NEW", status // 100)


def test_the_largest_error_fits_grpcs_trailers() -> None:
    fields = [FieldError("я" * 999, "ж" * 999)] * 99
    sent = error("VALIDATION_FAILED", "ы" * 9999, fields=fields, retry_after_s=0.5)
    assert len(sent.fields) == 16
    assert len(sent.message.encode()) <= 512
    percent_encoded_message = 3 * len(sent.message.encode())
    assert len(base64.b64encode(status_bytes(sent))) + percent_encoded_message < 8 * 1024


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (8, "PAYLOAD_TOO_LARGE"),
        (14, "ADAPTER_UNREACHABLE"),
        (1, "ADAPTER_UNREACHABLE"),
        (4, "DEADLINE_EXCEEDED"),
        (12, "FEATURE_UNSUPPORTED"),
        (2, "ADAPTER_PROTOCOL_ERROR"),
        (3, "ADAPTER_PROTOCOL_ERROR"),
        (16, "ADAPTER_PROTOCOL_ERROR"),
    ],
)
@pytest.mark.parametrize("details", [None, b"", b"\xff\xff garbage"])
def test_a_grpc_status_of_a_stranger_is_named_by_its_code(code: int, reason: str, details: bytes | None) -> None:
    found = error_from_status(code, details, NAME)
    assert found.reason == reason
    assert NAME in found.message


def test_details_of_another_domain_are_a_strangers() -> None:
    status = status_pb2.Status(code=7, message="secret words")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="NOPE", domain="example.com"))
    found = error_from_status(7, status.SerializeToString(), NAME)
    assert found.reason == "ADAPTER_PROTOCOL_ERROR"
    assert "secret" not in found.message


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (413, "PAYLOAD_TOO_LARGE"),
        (429, "RATE_LIMITED"),
        (502, "ADAPTER_UNREACHABLE"),
        (503, "ADAPTER_UNREACHABLE"),
        (504, "ADAPTER_TIMEOUT"),
        (200, "ADAPTER_PROTOCOL_ERROR"),
        (302, "ADAPTER_PROTOCOL_ERROR"),
        (404, "ADAPTER_PROTOCOL_ERROR"),
        (500, "ADAPTER_PROTOCOL_ERROR"),
    ],
)
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"content-type": "text/html"}, b"<html>secret</html>"),
        ({"content-type": "application/json"}, b'{"reason": "QUEUE_FULL", "detail": "secret"}'),
        (PROBLEM, b"secret"),
        (PROBLEM, b'["secret"]'),
        (PROBLEM, b'{"title": "secret"}'),
        (PROBLEM, b'{"reason": 5, "detail": "secret"}'),
        (PROBLEM, b'{"reason": "A", "detail": "secret", "errors": [1]}'),
    ],
)
def test_an_http_answer_of_a_stranger_is_named_by_its_status(
    status: int, reason: str, headers: dict[str, str], body: bytes
) -> None:
    found = error_from_problem(status, headers, body, NAME)
    assert found.reason == reason
    assert "secret" not in found.message


def test_a_problem_without_the_exact_wait_has_it_from_its_header() -> None:
    body = b'{"reason": "QUEUE_FULL", "detail": "full"}'
    assert error_from_problem(429, {**PROBLEM, "retry-after": "3"}, body, NAME).retry_after_s == 3.0


def test_a_strangers_retry_after_is_kept() -> None:
    assert error_from_problem(429, {"retry-after": "3"}, b"", NAME).retry_after_s == 3.0
    assert error_from_problem(429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"", NAME).retry_after_s is None


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (FileExistsError(17, "File exists", "memory.db"), "memory.db: File exists"),
        (OSError(98, "Address already in use"), "Address already in use"),
        (OSError("cannot listen"), "cannot listen"),
        (error("DRAINING", "the server is ending"), "the server is ending"),
        (ConfigurationError("'x' is no address"), "'x' is no address"),
        (ValueError("a value"), "a value"),
    ],
)
def test_a_fault_is_told_without_its_number_or_reason(fault: Exception, told: str) -> None:
    assert sentence(fault) == told
