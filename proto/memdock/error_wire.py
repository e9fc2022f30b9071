"""The error table on the wire: google.rpc.Status in gRPC's trailers, RFC 9457 problem documents over HTTP.

Readers trust what carries the protocol's own mark (ErrorInfo of our domain, a problem with a `reason`). Anything else
comes from a proxy or a stranger: it is named by its status alone, and no word of it is passed on.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from memdock import errors
from memdock.errors import REASONS, FieldError, MemdockError, UnavailableError
from memdock.wire import not_of_the_protocol

DOMAIN = "memdock.dev"
DETAILS_KEY = "grpc-status-details-bin"
RETRIED_TRAILER = ("grpc-retry-pushback-ms", "-1")
"""Of an error that was tried again already: gRPC's own word for "do not retry" (gRFC A6)."""
PROBLEM_TYPE = "application/problem+json"

_CLASSES_BY_CODE: dict[int, type[MemdockError]] = {
    kind.code: kind
    for kind in (
        errors.InvalidArgumentError,
        errors.UnauthenticatedError,
        errors.PermissionDeniedError,
        errors.NotFoundError,
        errors.AlreadyExistsError,
        errors.AbortedError,
        errors.ResourceExhaustedError,
        errors.DeadlineExceededError,
        errors.UnimplementedError,
        errors.UnavailableError,
        errors.InternalError,
    )
}
_CODES_BY_STATUS = {
    400: 3,
    401: 16,
    403: 7,
    404: 5,
    405: 5,
    409: 6,
    413: 8,
    415: 3,
    429: 8,
    500: 13,
    501: 12,
    503: 14,
    504: 4,
}
_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}

UNREACHABLE = "cannot be reached: nothing answers there"
TOO_LARGE = "larger than is taken there (max_request_bytes, which Describe tells; 16 KiB of headers); send less at once"

_HTTP_1 = ("http1.x server", "Failed parsing HTTP/2")

# What a status means when no one of the protocol wrote it: gRPC's own limits and connections, proxies on the way.
_BARE_CODES = {
    1: ("ADAPTER_UNREACHABLE", "the connection was closed during the call"),
    4: ("DEADLINE_EXCEEDED", "the time of the call is used up"),
    8: ("PAYLOAD_TOO_LARGE", TOO_LARGE),
    12: ("FEATURE_UNSUPPORTED", "the call is not served there"),
    14: ("ADAPTER_UNREACHABLE", UNREACHABLE),
}
_BARE_STATUSES = {
    413: ("PAYLOAD_TOO_LARGE", TOO_LARGE),
    429: ("RATE_LIMITED", "too many requests"),
    502: ("ADAPTER_UNREACHABLE", "nothing answers behind the proxy"),
    503: ("ADAPTER_UNREACHABLE", UNREACHABLE),
    504: ("ADAPTER_TIMEOUT", "the answer did not come in time"),
}


def status_bytes(error: MemdockError) -> bytes:
    """The error as google.rpc.Status, for the trailer `grpc-status-details-bin`."""
    status = status_pb2.Status(code=error.code, message=error.message)
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN))
    if error.fields:
        violations = [
            error_details_pb2.BadRequest.FieldViolation(field=item.field, description=item.description)
            for item in error.fields
        ]
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=violations))
    if error.retry_after_s is not None:
        delay = Duration()
        delay.FromNanoseconds(round(error.retry_after_s * 1e9))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return bytes(status.SerializeToString())


def error_trailers(error: MemdockError) -> list[tuple[str, str | bytes]]:
    """The error as gRPC's trailers."""
    trailers: list[tuple[str, str | bytes]] = [(DETAILS_KEY, status_bytes(error))]
    return [*trailers, RETRIED_TRAILER] if error.retried else trailers


def error_from_trailers(code: int, trailers: Collection[tuple[str, Any]], name: str, said: str = "") -> MemdockError:
    """The error behind a gRPC code and its trailers; `name` is what was called, for the message.

    `said`: the words beside the code, by which alone gRPC tells that something else answers.
    """
    details = next((value for key, value in trailers if key == DETAILS_KEY), None)
    if code == 14 and details is None and any(words in said for words in _HTTP_1):
        return UnavailableError(
            "ADAPTER_UNREACHABLE", f"{name}: what answers there speaks no gRPC; HTTP has an address http://host:port"
        )
    found = error_from_status(code, details, name)
    found.retried = RETRIED_TRAILER in trailers
    return found


def error_from_status(code: int, details: bytes | None, name: str) -> MemdockError:
    """The error behind a gRPC code and its `grpc-status-details-bin`; `name` is what was called, for the message."""
    try:
        return _from_details(status_pb2.Status.FromString(details or b""))
    except (DecodeError, LookupError):
        reason, message = _BARE_CODES.get(code, ("", ""))
        return _bare(reason, message, name, f"gRPC code {code}")


def problem(error: MemdockError, request_id: str) -> bytes:
    """The error as a problem document.

    `retry_after_s` is the header `Retry-After` without its rounding; `retried` is there only where it is true.
    """
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": _TITLES[error.http_status],
        "status": error.http_status,
        "detail": error.message,
        "reason": error.reason,
        "request_id": request_id,
        "errors": [{"field": item.field, "description": item.description} for item in error.fields],
    }
    if error.retry_after_s is not None:
        document["retry_after_s"] = error.retry_after_s
    if error.retried:
        document["retried"] = True
    return orjson.dumps(document)


def problem_headers(error: MemdockError) -> list[tuple[str, str]]:
    """The headers that go with a problem document."""
    headers = [("content-type", PROBLEM_TYPE)]
    if error.retry_after_s is not None:
        headers.append(("retry-after", str(max(1, math.ceil(error.retry_after_s)))))
    if isinstance(error, errors.VerbError):
        headers.append(("allow", ", ".join(error.allow)))
    if isinstance(error, errors.UnauthenticatedError):
        headers.append(("www-authenticate", "Bearer"))
    return headers


def error_from_problem(status: int, headers: Mapping[str, str], body: bytes, name: str) -> MemdockError:
    """The error behind an HTTP answer that is not 200; `name` is what was called, for the message."""
    try:
        if not headers.get("content-type", "").startswith(PROBLEM_TYPE):
            raise LookupError
        return _from_problem(status, headers, orjson.loads(body))
    except (orjson.JSONDecodeError, LookupError, TypeError, ValueError):
        reason, message = _BARE_STATUSES.get(status, ("", ""))
        return _bare(reason, message, name, f"HTTP status {status}", _retry_after_s(headers))


def _from_details(status: status_pb2.Status) -> MemdockError:
    """Raises `LookupError` when the status does not carry our mark."""
    info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    for detail in status.details:
        _ = detail.Unpack(info) or detail.Unpack(bad) or detail.Unpack(retry)
    if info.domain != DOMAIN or not info.reason:
        raise LookupError
    return _marked(
        info.reason,
        _CLASSES_BY_CODE[status.code],
        status.message,
        [FieldError(item.field, item.description) for item in bad.field_violations],
        retry.retry_delay.ToNanoseconds() / 1e9 if retry.HasField("retry_delay") else None,
    )


def _from_problem(status: int, headers: Mapping[str, str], document: Any) -> MemdockError:
    """Raises `LookupError`, `TypeError` or `ValueError` when the document is not one of ours."""
    reason, detail = document["reason"], document["detail"]
    retry_after_s = document.get("retry_after_s", _retry_after_s(headers))
    if type(reason) is not str or type(detail) is not str or not reason:
        raise TypeError
    fields = [FieldError(str(item["field"]), str(item["description"])) for item in document.get("errors", ())]
    fallback = _CLASSES_BY_CODE[_CODES_BY_STATUS[status]]
    found = _marked(reason, fallback, detail, fields, None if retry_after_s is None else float(retry_after_s))
    found.retried = document.get("retried") is True
    return found


def _marked(
    reason: str,
    fallback: type[MemdockError],
    message: str,
    fields: Iterable[FieldError],
    retry_after_s: float | None,
) -> MemdockError:
    # A newer server may have reasons that have no place in our table yet: then the status tells the class.
    kind = REASONS.get(reason, fallback)
    return kind(reason, message, fields=tuple(fields), retry_after_s=retry_after_s)


def _bare(reason: str, message: str, name: str, status: str, retry_after_s: float | None = None) -> MemdockError:
    if not reason:
        return not_of_the_protocol(f"{name} answers with {status} and no details; does that address speak Memdock?")
    return errors.error(reason, f"{name}: {message}", retry_after_s=retry_after_s)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after", "")
    return float(text) if text.isdecimal() and len(text) < 6 else None
