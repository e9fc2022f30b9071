"""P: errors and limits.

The form of each refusal is looked at in `memdock.conformance.faces`.
"""

import re
from collections.abc import Callable
from typing import Any

import orjson

from memdock.conformance.case import Need, case, expect
from memdock.conformance.faces import as_json, url_path
from memdock.conformance.models import Fault
from memdock.conformance.probe import Probe, names, question, refused, told_refusal
from memdock.convert import wire_turn
from memdock.errors import MemdockError
from memdock.service import METHODS
from memdock.types import Support, TurnState
from memdock.v1 import memory_pb2 as pb

MODEL_FAULTS = (
    Fault(status=400),
    Fault(status=401),
    Fault(broken="garbage"),
    Fault(broken="cut"),
    Fault(broken="empty"),
)


def _add(probe: Probe, space_id: str, *turns: Any) -> Any:
    return pb.AddTurnsRequest(system=probe.target.system, space_id=space_id, turns=[wire_turn(turn) for turn in turns])


def request_bytes(probe: Probe, request: Any, **changes: Any) -> bytes:
    """A request as the face sends it, over HTTP without what stands in the path."""
    if probe.over_http is None:
        return bytes(request.SerializeToString())
    document = {key: value for key, value in as_json(request).items() if key not in ("system", "space_id")}
    return orjson.dumps(document | changes)


@case("P1", "every reason is reached, and its forms agree")
async def reasons(probe: Probe) -> None:
    """Each reason that a caller can cause is reached; gRPC code, HTTP status and problem document are the table's."""
    space = probe.space()
    system, name = probe.target.system, space.space_id
    await space.store(probe.turn("t1"))
    bad: dict[str, tuple[str, Any]] = {
        "VALIDATION_FAILED": ("Retrieve", pb.RetrieveRequest(system=system, space_id=name, query="")),
        "SELECTOR_MISSING": ("Forget", pb.ForgetRequest(system=system, space_id=name)),
        "BAD_PAGE_TOKEN": ("ListTurns", pb.ListTurnsRequest(system=system, space_id=name, page_token="none")),  # noqa: S106
        "TURN_ID_CONFLICT": ("AddTurns", _add(probe, name, probe.turn("t1"))),
    }
    for reason, (method, request) in bad.items():
        await refused(probe.call(method, request), reason, what=f"a bad {method}")
    unknown = pb.DescribeRequest(system="no-such-system-here")
    await refused(probe.call("Describe", unknown), "SYSTEM_NOT_FOUND", "SYSTEM_FORBIDDEN", what="an unknown system")
    for path in _raw_refusals(probe, name):
        told_refusal(await path[1](), path[0], what=path[2])
    await space.settle()
    expect(await space.states() == {"t1": TurnState.SEARCHABLE}, "a request that was refused changed the space")


def _raw_refusals(probe: Probe, name: str) -> list[tuple[str, Callable[[], Any], str]]:
    path = {"space_id": name}
    if probe.over_http is None:
        return [
            ("MALFORMED_REQUEST", lambda: probe.send("AddTurns", b"\xff\xff\xff", **path), "bytes that are no message"),
            ("UNKNOWN_FIELD", lambda: probe.send("Retrieve", _unknown(probe, name), **path), "an unknown field"),
        ]
    root = url_path(METHODS["Retrieve"], {"system": probe.target.system, "space_id": name})
    text = {"content-type": "text/plain"}
    return [
        ("MALFORMED_REQUEST", lambda: probe.send("Retrieve", b'{"query": ', **path), "JSON that is cut"),
        ("UNKNOWN_FIELD", lambda: probe.send("Retrieve", b'{"query": "x", "k": 1}', **path), "an unknown field"),
        ("BAD_TIMESTAMP", lambda: probe.send("Retrieve", b'{"query": "x", "reference_time": 5}', **path), "a bad time"),
        ("CONTENT_TYPE_UNSUPPORTED", lambda: probe.raw_http("POST", root, b"{}", headers=text), "a body of plain text"),
        ("PATH_NOT_FOUND", lambda: probe.raw_http("GET", "/v1/nothing/here"), "an unknown path"),
        ("VERB_NOT_ALLOWED", lambda: probe.raw_http("DELETE", root), "a verb that the path does not take"),
    ]


def _unknown(probe: Probe, name: str) -> bytes:
    """A RetrieveRequest with field 99."""
    request = pb.RetrieveRequest(system=probe.target.system, space_id=name, query="x")
    return bytes(request.SerializeToString()) + b"\x98\x06\x01"


@case("P1.models", "a failed model is an error, never an empty answer", needs=(Need.MODELS,))
async def failed_model(probe: Probe) -> None:
    """While the model fails for a query, Retrieve is an error, or the right answer without it; never an empty list."""
    space, word = probe.space(), probe.word()
    await space.store(probe.turn("t1", word))
    for fault in MODEL_FAULTS:
        probe.models.fail(word, fault)
        await _answers_or_fails(probe, space.space_id, word, f"{fault.status or ''}{fault.broken}")
    probe.models.fail(word, None)
    await space.finds(word)


async def _answers_or_fails(probe: Probe, space_id: str, word: str, fault: str) -> None:
    try:
        answer = await probe.plain.retrieve(space_id, question(word))
    except MemdockError as error:
        expect(error.code not in (3, 5), f"a failure of the model is told as {error.reason}, a mistake of the caller")
        return
    held = [memory for memory in answer.memories if word.lower() in memory.text.lower()]
    expect(held, f"while the model fails ({fault}) Retrieve answers as if nothing were there")


@case("P2", "no text of a turn in an error")
async def no_text_in_errors(probe: Probe) -> None:
    """Refusals of turns, queries and selectors that hold a text never repeat it; no error shows a stack trace."""
    space, word = probe.space(), probe.word()
    turn = probe.turn("t1", word)
    await space.store(turn)
    zone = probe.turn("t2", word, time_zone="Mars/Olympus")
    role = probe.turn("t3", word, role=f"role {word}")
    nul = probe.turn("t4", word, text=f"{word}\0{word}")
    other = probe.turn("t1", text=f"{word} and more")
    for bad in (zone, role, nul, other):
        await refused(probe.call("AddTurns", _add(probe, space.space_id, bad)), "VALIDATION_FAILED", "TURN_ID_CONFLICT",
                      what="a bad turn")  # fmt: skip
    query = f"{word} " * (probe.description.limits.max_query_bytes // len(word))
    await refused(probe.plain.retrieve(space.space_id, query), what="a query that is too long")
    await refused(probe.plain.retrieve(space.space_id, f"{word}\0"), what="a query with NUL")
    if probe.over_http is not None:
        body = orjson.dumps({"turns": [{"turn_id": "t9", "text": word, "words": word}]})
        told_refusal(await probe.send("AddTurns", body, space_id=space.space_id), "UNKNOWN_FIELD", what="a bad turn")
        told = await probe.send("AddTurns", f'{{"turns": "{word}'.encode(), space_id=space.space_id)
        told_refusal(told, "MALFORMED_REQUEST", what="JSON that is cut")


@case("P2.models", "no word of a model's failure in an error", needs=(Need.MODELS,))
async def no_secret_in_errors(probe: Probe) -> None:
    """A model that fails with a key and a trace in its words: neither shows in the turn's error nor in Retrieve's."""
    space, word = probe.space(), probe.word()
    probe.models.fail(word, Fault(status=401))
    await space.add(probe.turn("t1", word))
    flushed = await space.settle()
    for failed in flushed.failed:
        said = failed.error.message if failed.error else ""
        found = probe.target.leak(said) or ("a stack trace" if "Traceback" in said else "")
        expect(not found, f"the error of a turn holds {found}")
        expect(
            failed.error is not None and re.fullmatch("[A-Z_]+", failed.error.reason), "a turn's error has no reason"
        )
    await _answers_or_refuses(probe, space.space_id, word)


async def _answers_or_refuses(probe: Probe, space_id: str, word: str) -> None:
    try:
        await probe.plain.retrieve(space_id, question(word))
    except MemdockError as error:
        expect(error.reason, "an error has no reason")  # its words have been looked at on their way


@case("P3", "an unknown field is refused by name")
async def unknown_fields(probe: Probe) -> None:
    """A field that the protocol does not have, at any depth, is 400 UNKNOWN_FIELD and named; over HTTP names are taken
    in either case."""
    space = probe.space()
    add = _add(probe, space.space_id, probe.turn("t1"))
    if probe.over_http is None:
        turn = add.turns[0].SerializeToString() + b"\x98\x06\x01"
        deep = pb.AddTurnsRequest(system=probe.target.system, space_id=space.space_id).SerializeToString()
        deep += b"\x1a" + _varint(len(turn)) + turn
        for body, method, named in (
            (_unknown(probe, space.space_id), "Retrieve", "99"),
            (deep, "AddTurns", "turns[0].99"),
        ):
            error = told_refusal(await probe.send(method, body), "UNKNOWN_FIELD", what="an unknown field number")
            expect(names(error, named), f"UNKNOWN_FIELD does not name {named}")
        return
    turn_document = as_json(add)["turns"][0]
    bad = {
        "texts": ("AddTurns", {"turns": [turn_document | {"texts": "x"}]}, "turns[0].texts"),
        "topk": ("Retrieve", {"query": "x", "topk": 3}, "topk"),
        "sessions": ("Retrieve", {"query": "x", "filter": {"sessions": ["s1"]}}, "filter.sessions"),
        "ids": ("Forget", {"selector": {"ids": ["x"]}}, "selector.ids"),
    }
    for method, document, named in bad.values():
        told = await probe.send(method, orjson.dumps(document), space_id=space.space_id)
        error = told_refusal(told, "UNKNOWN_FIELD", what=f"the field {named}")
        expect(names(error, named), f"UNKNOWN_FIELD does not name {named}")
    for document in ({"query": "x", "top_k": 1}, {"query": "x", "topK": 1}):
        told = await probe.send("Retrieve", orjson.dumps(document), space_id=space.space_id)
        expect(told.error is None, f"the field {list(document)[1]} is refused")
    answer = orjson.loads(told.body)
    expect("failed_count" in answer and "memories" in answer, "names in answers are not snake_case, or are left out")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


@case("P4", "Describe is true, and its limits are exact")
async def limits(probe: Probe) -> None:
    """Describe is whole; each limit is taken exactly at it and refused one above; too large a request is 413."""
    await _describes(probe)
    space, limit = probe.space(), probe.description.limits
    most = limit.max_turns_per_request
    await space.add(*(probe.turn(f"t{number}") for number in range(most)))
    too_many = [probe.turn(f"x{number}") for number in range(most + 1)]
    await _one_above(probe.call("AddTurns", _add(probe, space.space_id, *too_many)), "turns", "max_turns_per_request")
    long = probe.turn("long", text="x" * (limit.max_turn_bytes + 1))
    await _one_above(probe.call("AddTurns", _add(probe, space.space_id, long)), "turns[0].text", "max_turn_bytes")
    await probe.plain.retrieve(space.space_id, "x", top_k=limit.max_top_k)
    await _one_above(probe.plain.retrieve(space.space_id, "x", top_k=limit.max_top_k + 1), "top_k", "max_top_k")
    query = "y" * limit.max_query_bytes
    await probe.plain.retrieve(space.space_id, query)
    await _one_above(probe.plain.retrieve(space.space_id, f"{query}y"), "query", "max_query_bytes")
    page = pb.ListTurnsRequest(system=probe.target.system, space_id=space.space_id, page_size=limit.max_page_size)
    await probe.call("ListTurns", page)
    page.page_size += 1
    await _one_above(probe.call("ListTurns", page), "page_size", "max_page_size")
    await _request_size(probe, space.space_id, limit.max_request_bytes)
    flush = pb.FlushRequest(system=probe.target.system, space_id=space.space_id)
    flush.timeout.FromSeconds(3600)
    answer = await probe.call("Flush", flush, timeout_s=probe.settings.timeout_s)
    expect(answer.done or answer.pending, "a Flush with a longer wait than max_wait does not answer with the truth")


async def _one_above(work: Any, field: str, limit: str) -> None:
    error = await refused(work, "VALIDATION_FAILED", "PAYLOAD_TOO_LARGE", what=f"one above {limit}")
    expect(
        error.reason != "VALIDATION_FAILED" or names(error, field), f"the refusal one above {limit} names no {field}"
    )


async def _describes(probe: Probe) -> None:
    description = await probe.client.describe()
    expect("v1" in description.protocol_versions, "Describe does not tell that v1 is spoken")
    expect(description.adapter.name and description.framework.name, "Describe does not tell adapter and framework")
    expect(re.fullmatch("sha256:[0-9a-f]{64}", description.config_digest), "config_digest is not sha256: and 64 digits")
    answer = await probe.call("Describe", pb.DescribeRequest(system=probe.target.system))
    told = sorted(one.feature for one in answer.features)
    known = [number for number in pb.Feature.values() if number]
    expect(told == known, "Describe does not tell each feature of the closed list once")
    expect(all(one.support for one in answer.features), "Describe leaves out how a feature is done")
    expect(set(description.features.values()) <= set(Support), "Describe tells a support that is not of the list")
    numbers = {field.name: value for field, value in answer.limits.ListFields()}
    expect(len(numbers) == 7, "Describe does not tell all limits")


async def _request_size(probe: Probe, space_id: str, size: int) -> None:
    """Exactly at the size a request is refused for what stands in it, so that nothing large need be stored."""
    for exact, reason in ((size, "VALIDATION_FAILED"), (size + 1, "PAYLOAD_TOO_LARGE")):
        body = _padded(probe, space_id, exact)
        assert len(body) == exact
        told = await probe.send("AddTurns", body, space_id=space_id)
        told_refusal(told, reason, what=f"a request of {exact - size:+d} bytes beside max_request_bytes")


def _padded(probe: Probe, space_id: str, size: int) -> bytes:
    """AddTurns of one turn that is too long, of exactly so many bytes."""
    turn = probe.turn("large", text="x")
    length = size
    while True:
        request = _add(probe, space_id)
        request.turns.append(wire_turn(turn))
        request.turns[0].text = "x" * length
        body = request_bytes(probe, request)
        if len(body) == size:
            return body
        length -= len(body) - size
