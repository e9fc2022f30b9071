"""What the gRPC and the HTTP face share: who calls, how a call is answered, and what is told about it afterwards."""

import ipaddress
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

import structlog

from memdock.errors import InternalError, MemdockError, UnavailableError
from memdock.findings import refuse
from memdock.log import log_fault
from memdock.service import Call, Method
from memdock.wire import MAX_ANSWER_BYTES

CANCELLED = "CANCELLED"

Admit = Callable[[Method, Mapping[str, str], Call], Awaitable[None]]
"""Asked before a body is parsed (HTTP: read), with the fields of the path (none over gRPC); raises to refuse."""

CheckReady = Callable[[], Awaitable[Mapping[str, bool]]]
"""Which systems are ready, by name; raises `MemdockError` (STORE_UNREACHABLE, DRAINING) when nothing can be served."""

READ_HEADERS = (
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "traceparent",
    "x-request-id",
    "x-timeout-ms",
)
"""The headers that a face reads."""

_REQUEST_ID = re.compile(r"[!-~]{1,128}")
_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

_log = structlog.get_logger("memdock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One call as a face served it. `reason`: of its error, CANCELLED when the caller left, empty when it went well."""

    method: str
    face: str
    request_id: str
    reason: str
    elapsed_ms: float
    request_bytes: int
    answer_bytes: int


Observe = Callable[[Served], None]


def log_served(served: Served) -> None:
    """The default observer: one line a call."""
    _log.info(
        "call",
        method=served.method,
        face=served.face,
        request_id=served.request_id,
        reason=served.reason,
        elapsed_ms=round(served.elapsed_ms, 2),
        request_bytes=served.request_bytes,
        answer_bytes=served.answer_bytes,
    )


async def always_ready() -> Mapping[str, bool]:
    """The readiness of a service that has nothing to lose."""
    return {}


async def admit_all(method: Method, path: Mapping[str, str], call: Call) -> None:
    """Refuses nobody: for a face behind which the service itself, or the network, decides."""


def read_call(headers: Mapping[str, str], left_s: float | None) -> Call:
    """The caller's headers (gRPC: metadata), names in lower case. A request id that is missing or odd is made anew."""
    request_id = headers.get("x-request-id", "")
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    trace_parent = headers.get("traceparent", "")
    return Call(
        request_id=request_id if _REQUEST_ID.fullmatch(request_id) else new_request_id(),
        deadline=None if left_s is None else time.monotonic() + left_s,
        credential=credential.strip() if scheme.lower() == "bearer" else "",
        trace_parent=trace_parent if _TRACE_PARENT.fullmatch(trace_parent) else "",
    )


def refuse_repeated(names: Iterable[str]) -> None:
    """Raises MALFORMED_REQUEST when a header that is read is there twice: whoever passed it on may have read the other.

    `names`: of all headers of the call, in lower case.
    """
    counts = Counter(names)
    for name in READ_HEADERS:
        if counts[name] > 1:
            raise refuse("MALFORMED_REQUEST", name, "this header is given more than once; send it once")


def new_request_id() -> str:
    """For a call without one."""
    # A name, not a secret: asking the system for randomness costs each call a system call.
    return f"{random.getrandbits(64):016x}"


def as_error(fault: Exception, method: str, request_id: str) -> MemdockError:
    """An error of the protocol as it is; anything else is a bug: logged, and INTERNAL without a word of its own."""
    if isinstance(fault, MemdockError):
        return fault
    log_fault("fault", fault, method=method, request_id=request_id)
    return InternalError("INTERNAL", f"the server failed; its log says where, under request {request_id}")


def bounded(body: bytes) -> bytes:
    """The answer, unless it is larger than any client takes."""
    if len(body) > MAX_ANSWER_BYTES:
        raise InternalError(
            "ADAPTER_PROTOCOL_ERROR",
            f"the answer has {len(body)} bytes, at most {MAX_ANSWER_BYTES} are sent; ask for fewer items",
        )
    return body


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address to listen on; gRPC by itself takes port 65537 for 1. Raises `OSError`."""
    host, _, port = address.rpartition(":")
    if not host or not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > 65535:
        raise cannot_listen(address, "it is not of the form host:port, with a port up to 65535")
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches what listens on `address` (`host:port`)."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def cannot_listen(address: str, why: str) -> OSError:
    """The error when a face cannot be bound to its address."""
    return OSError(f"cannot listen on {address}: {why}; give host:port with a free port, or port 0")


async def readiness(check_ready: CheckReady) -> Mapping[str, bool]:
    """Asks for readiness; any failure is `UnavailableError`."""
    try:
        return await check_ready()
    except MemdockError as error:
        raise UnavailableError(error.reason, error.message) from None
    except Exception as fault:  # noqa: BLE001  a store that cannot be asked is a store that is away
        log_fault("readiness_failed", fault)
        raise UnavailableError("STORE_UNREACHABLE", "the readiness check failed; the log says where") from None
