"""Checks a request's values against the protocol's rules and a server's limits; the faces do it before any service.

What a message's form already excludes (unknown fields, wrong types, bad JSON times) is refused by `memdock.wire`.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from google.protobuf.timestamp_pb2 import Timestamp

from memdock.errors import PayloadTooLargeError
from memdock.findings import Findings
from memdock.json_values import FIRST_SECOND, LAST_SECOND, MAX_DURATION_S
from memdock.types import Limits
from memdock.v1 import memory_pb2 as pb

DEFAULT_LIMITS = Limits()
ROLES = ("user", "assistant", "system", "tool")
MAX_SELECTED = 1000
MAX_NAME_BYTES = 256
MAX_MEMORY_ID_BYTES = 1024
MAX_METADATA_ENTRIES = 32
MAX_METADATA_KEY_BYTES = 64
MAX_METADATA_VALUE_BYTES = 1024

SYSTEM = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}")
_PRINTABLE = re.compile(r"[ -~]{1,128}")
_ID_FORM = "must be 1 to 128 of A-Z a-z 0-9 . _ ~ - and begin with a letter or a digit"
_PRINTABLE_FORM = "must be 1 to 128 printable ASCII characters"


def check(request: Any, limits: Limits = DEFAULT_LIMITS) -> None:
    """Returns when the request may be served.

    Raises `InvalidArgumentError` with at most 16 field paths, or `PayloadTooLargeError` past `max_request_bytes`.
    """
    size = request.ByteSize()
    if size > limits.max_request_bytes:
        raise too_large(size, limits)
    findings = Findings()
    fields = request.DESCRIPTOR.fields_by_name
    if "system" in fields and request.system and not SYSTEM.fullmatch(request.system):
        findings.add("VALIDATION_FAILED", "system", "must be 1 to 63 of a-z 0-9 - and begin with a letter or a digit")
    if "space_id" in fields:
        _check_form(request.space_id, ID, _ID_FORM, "space_id", findings)
    own = _CHECKS.get(type(request))
    if own is not None:
        own(request, limits, findings)
    findings.raise_any()


def check_turn(turn: pb.Turn, limits: Limits = DEFAULT_LIMITS, path: str = "") -> None:
    """Checks one turn by itself; `path` is put before the names of its fields."""
    findings = Findings()
    _check_turn(turn, path, limits, findings)
    findings.raise_any()


def too_large(size_bytes: int, limits: Limits) -> PayloadTooLargeError:
    """The error for a request past `max_request_bytes`."""
    return PayloadTooLargeError(
        "PAYLOAD_TOO_LARGE",
        f"the request has {size_bytes} bytes, max_request_bytes is {limits.max_request_bytes}; send less at once",
    )


def _check_add(request: pb.AddTurnsRequest, limits: Limits, findings: Findings) -> None:
    count = len(request.turns)
    if not 1 <= count <= limits.max_turns_per_request:
        findings.add("VALIDATION_FAILED", "turns", f"must be 1 to {limits.max_turns_per_request} turns, not {count}")
        return
    first_index: dict[str, int] = {}
    for index, turn in enumerate(request.turns):
        path = f"turns[{index}]."
        _check_turn(turn, path, limits, findings)
        first = first_index.setdefault(turn.turn_id, index)
        if first != index:
            findings.add("VALIDATION_FAILED", f"{path}turn_id", f"is the turn_id of turns[{first}] too")


def _check_turn(turn: pb.Turn, path: str, limits: Limits, findings: Findings) -> None:
    _check_form(turn.turn_id, _PRINTABLE, _PRINTABLE_FORM, f"{path}turn_id", findings)
    _check_form(turn.session_id, ID, _ID_FORM, f"{path}session_id", findings)
    if turn.role not in ROLES:
        findings.add("VALIDATION_FAILED", f"{path}role", f"must be one of {', '.join(ROLES)}")
    _check_text(turn.name, f"{path}name", MAX_NAME_BYTES, findings)
    if not turn.text:
        findings.add("VALIDATION_FAILED", f"{path}text", "is required")
    _check_text(turn.text, f"{path}text", limits.max_turn_bytes, findings)
    if turn.HasField("time"):
        _check_time(turn.time, f"{path}time", findings)
    _check_zone(turn.time_zone, f"{path}time_zone", findings)
    if turn.metadata:
        _check_metadata(turn.metadata, f"{path}metadata", findings)


def _check_metadata(metadata: Any, path: str, findings: Findings) -> None:
    if len(metadata) > MAX_METADATA_ENTRIES:
        findings.add("VALIDATION_FAILED", path, f"must have at most {MAX_METADATA_ENTRIES} entries")
    for key, value in metadata.items():
        if not key:
            findings.add("VALIDATION_FAILED", path, "has an empty key")
        _check_text(key, f"{path} (a key)", MAX_METADATA_KEY_BYTES, findings)
        _check_text(value, f"{path} (a value)", MAX_METADATA_VALUE_BYTES, findings)


def _check_flush(request: pb.FlushRequest, limits: Limits, findings: Findings) -> None:  # noqa: ARG001
    if request.timeout.seconds < 0 or request.timeout.nanos < 0:
        findings.add("VALIDATION_FAILED", "timeout", "must not be negative")
    elif request.timeout.seconds > MAX_DURATION_S or request.timeout.nanos >= 10**9:
        description = f"must be at most {MAX_DURATION_S} seconds, with 0 to 999999999 nanos"
        findings.add("VALIDATION_FAILED", "timeout", description)


def _check_retrieve(request: pb.RetrieveRequest, limits: Limits, findings: Findings) -> None:
    if not request.query.strip():
        findings.add("VALIDATION_FAILED", "query", "is required and must not be blank")
    _check_text(request.query, "query", limits.max_query_bytes, findings)
    if request.HasField("top_k") and not 1 <= request.top_k <= limits.max_top_k:
        findings.add("VALIDATION_FAILED", "top_k", f"must be 1 to {limits.max_top_k}")
    if request.HasField("reference_time"):
        _check_time(request.reference_time, "reference_time", findings)
    elif request.time_zone:
        findings.add("VALIDATION_FAILED", "time_zone", "needs reference_time")
    _check_zone(request.time_zone, "time_zone", findings)
    if request.HasField("filter"):
        _check_filter(request.filter, findings)


def _check_filter(narrow: pb.Filter, findings: Findings) -> None:
    _check_ids(narrow.session_ids, ID, _ID_FORM, "filter.session_ids", findings)
    bounds = [name for name in ("since", "until") if narrow.HasField(name)]
    for name in bounds:
        _check_time(getattr(narrow, name), f"filter.{name}", findings)
    if len(bounds) == 2 and _instant(narrow.since) >= _instant(narrow.until):
        findings.add("VALIDATION_FAILED", "filter.until", "must be after filter.since")


def _check_forget(request: pb.ForgetRequest, limits: Limits, findings: Findings) -> None:  # noqa: ARG001
    selector = request.selector
    filled = [ids for ids in (selector.memory_ids, selector.turn_ids, selector.session_ids) if ids]
    if len(filled) != 1:
        description = "must fill exactly one of memory_ids, turn_ids and session_ids"
        findings.add("SELECTOR_MISSING", "selector", description)
    _check_ids(selector.turn_ids, _PRINTABLE, _PRINTABLE_FORM, "selector.turn_ids", findings)
    _check_ids(selector.session_ids, ID, _ID_FORM, "selector.session_ids", findings)
    _check_count(selector.memory_ids, "selector.memory_ids", findings)
    for index, memory_id in enumerate(selector.memory_ids):
        path = f"selector.memory_ids[{index}]"
        if not memory_id:
            findings.add("VALIDATION_FAILED", path, "is empty")
        _check_text(memory_id, path, MAX_MEMORY_ID_BYTES, findings)
    _check_request_id(request.request_id, findings)


def _check_reset(request: pb.ResetRequest, limits: Limits, findings: Findings) -> None:  # noqa: ARG001
    _check_request_id(request.request_id, findings)


def _check_page(request: pb.ListTurnsRequest | pb.ListMemoriesRequest, limits: Limits, findings: Findings) -> None:
    if request.page_size > limits.max_page_size:
        findings.add("VALIDATION_FAILED", "page_size", f"must be at most {limits.max_page_size}")
    if "\0" in request.page_token:
        findings.add("BAD_PAGE_TOKEN", "page_token", "must be the next_page_token of the answer before")


def _check_request_id(request_id: str, findings: Findings) -> None:
    if request_id:
        _check_form(request_id, _PRINTABLE, _PRINTABLE_FORM, "request_id", findings)


def _check_ids(ids: Iterable[str], form: re.Pattern[str], description: str, path: str, findings: Findings) -> None:
    listed = tuple(ids)
    _check_count(listed, path, findings)
    for index, one in enumerate(listed):
        _check_form(one, form, description, f"{path}[{index}]", findings)


def _check_count(ids: Any, path: str, findings: Findings) -> None:
    if len(ids) > MAX_SELECTED:
        findings.add("VALIDATION_FAILED", path, f"must have at most {MAX_SELECTED} entries")


def _check_form(text: str, form: re.Pattern[str], description: str, path: str, findings: Findings) -> None:
    if not form.fullmatch(text):
        findings.add("VALIDATION_FAILED", path, description if text else f"is required; it {description}")


def _check_text(text: str, path: str, max_bytes: int, findings: Findings) -> None:
    if "\0" in text:
        findings.add("VALIDATION_FAILED", path, "must not contain NUL (U+0000)")
    if len(text) * 4 > max_bytes and len(text.encode()) > max_bytes:
        findings.add("VALIDATION_FAILED", path, f"has {len(text.encode())} bytes of UTF-8; at most {max_bytes}")


def _check_time(time: Timestamp, path: str, findings: Findings) -> None:
    if not FIRST_SECOND <= time.seconds <= LAST_SECOND or not 0 <= time.nanos < 10**9:
        findings.add("BAD_TIMESTAMP", path, "must be an instant in the years 1 to 9999, with 0 to 999999999 nanos")


def _check_zone(zone: str, path: str, findings: Findings) -> None:
    if zone and zone not in _zones():
        findings.add("VALIDATION_FAILED", path, 'must be an IANA time zone such as "Europe/Moscow", or empty for UTC')


@cache
def _zones() -> frozenset[str]:
    # Machines keep their own zone under a name that is not IANA's and means another zone elsewhere.
    return frozenset(available_timezones()) - {"localtime"}


def _instant(time: Timestamp) -> tuple[int, int]:
    return time.seconds, time.nanos


_CHECKS: dict[type, Callable[[Any, Limits, Findings], None]] = {
    pb.AddTurnsRequest: _check_add,
    pb.FlushRequest: _check_flush,
    pb.RetrieveRequest: _check_retrieve,
    pb.ForgetRequest: _check_forget,
    pb.ResetRequest: _check_reset,
    pb.ListTurnsRequest: _check_page,
    pb.ListMemoriesRequest: _check_page,
}
