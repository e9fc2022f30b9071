"""G: gateways, between keys on one side and scripted systems on the other."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from memdock.client import AsyncClient
from memdock.conformance.case import Need, case, expect
from memdock.conformance.faces import Face, HttpFace, url_path
from memdock.conformance.gateway_kit import SLOW_PLACES, SLOW_QUEUE, gateway_kit
from memdock.conformance.mirror import normal
from memdock.conformance.probe import Probe, question, refused
from memdock.conformance.upstream import BareError, Upstream
from memdock.convert import wire_turn
from memdock.errors import (
    AbortedError,
    InternalError,
    InvalidArgumentError,
    MemdockError,
    ResourceExhaustedError,
    UnavailableError,
)
from memdock.service import METHODS, Call
from memdock.types import Feature, Turn
from memdock.v1 import memory_pb2 as pb

_GATEWAY = (Need.GATEWAY,)


def _client(face: Face, system: str = "steady") -> AsyncClient:
    return AsyncClient(face, system=system, timeout_s=20.0)


async def ask(face: Face, space: str = "anna", system: str = "steady") -> Any:
    """A Retrieve through the gateway."""
    return await _client(face, system).retrieve(space, "x")


@case("G4", "what may pass is tried again, and nothing else", needs=_GATEWAY, once=True)
async def retries(probe: Probe) -> None:
    """UNAVAILABLE twice and then an answer is one write for the caller, with equal requests; IN_PROGRESS is tried again
    when the system said when; INVALID_ARGUMENT, a quota and INTERNAL reach the system once."""
    async with gateway_kit(probe.target.gateway) as kit:
        upstream = kit.upstreams["odd"]
        for face in kit.faces():
            client = _client(face, "odd")
            upstream.received.clear()
            upstream.scripts["AddTurns"] = _fails_first(2, UnavailableError("STORE_UNREACHABLE", "away"))
            await client.add_turns("anna", [probe.turn("t1")])
            calls = upstream.calls("AddTurns")
            expect(len(calls) == 3, f"a system that is away twice is called {len(calls)} times, not 3")
            expect(len({one.request.SerializeToString() for one in calls}) == 1, "a retry is another request")
            upstream.scripts["Reset"] = _fails_first(1, AbortedError("IN_PROGRESS", "goes on", retry_after_s=0.1))
            await client.reset("anna")
            resets = upstream.calls("Reset")
            expect(len({one.request.request_id for one in resets}) == 1, "a Reset that is tried again is another one")
            for error in (
                InvalidArgumentError("VALIDATION_FAILED", "no"),
                ResourceExhaustedError("PROVIDER_RATE_LIMITED", "the quota is used up"),
                InternalError("INTERNAL", "broken"),
            ):
                upstream.received.clear()
                upstream.scripts["Retrieve"] = _fails_first(9, error)
                await refused(ask(face, system="odd"), error.reason, what="a call that the system refuses")
                expect(len(upstream.calls("Retrieve")) == 1, f"{error.reason} is tried again")


def _fails_first(times: int, error: MemdockError) -> Callable[[Any], Awaitable[Any]]:
    left = [times]

    async def script(request: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        if isinstance(request, pb.AddTurnsRequest):
            states = [pb.TurnResult(turn_id=turn.turn_id, state=pb.TURN_STATE_PENDING) for turn in request.turns]
            return pb.AddTurnsResponse(results=states)
        return pb.ResetResponse()

    return script


@case("G5", "a slow system slows no other", needs=_GATEWAY, once=True)
async def lanes(probe: Probe) -> None:
    """While one system's places and queue are full, a further call there is 429 QUEUE_FULL with Retry-After, and calls
    to another system are answered."""
    async with gateway_kit(probe.target.gateway) as kit:
        slow = kit.upstreams["slow"]
        slow.gate.clear()
        grpc_face, http = kit.faces()
        held = [asyncio.create_task(ask(grpc_face, system="slow")) for _ in range(SLOW_PLACES + SLOW_QUEUE)]
        try:
            await _full(slow, held)
            for face in (grpc_face, http):
                error = await refused(ask(face, system="slow"), "QUEUE_FULL", what="a call to a full system")
                expect(error.retry_after_s, "QUEUE_FULL does not say when to come back")
            assert isinstance(http, HttpFace)
            path = url_path(METHODS["Retrieve"], {"system": "slow", "space_id": "anna"})
            told = await http.exchange("POST", path, Call(), b'{"query": "x"}')
            expect(told.status == 429, f"a full queue is HTTP status {told.status}, not 429")
            expect((told.headers or {}).get("retry-after", "").isdecimal(), "429 has no Retry-After")
            for face in (grpc_face, http):
                await asyncio.gather(*(ask(face) for _ in range(20)))
            expect(not any(task.done() for task in held), "a call to a system that does not answer ended")
        finally:
            slow.gate.set()
        await asyncio.gather(*held)


async def _full(slow: Upstream, held: list["asyncio.Task[Any]"]) -> None:
    """Returns when the places are taken; the queue fills in the order in which calls were sent."""
    ends = time.monotonic() + 10
    while slow.inside < SLOW_PLACES:
        expect(time.monotonic() < ends, "the calls do not reach the system")
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)  # those that wait are seen by nobody
    expect(slow.inside == SLOW_PLACES, "more calls are inside a system than its places")
    expect(not any(task.done() for task in held), "calls that should wait are refused")


@case("G6", "nothing private in logs, metrics and traces", needs=_GATEWAY, once=True)
async def private(probe: Probe) -> None:
    """After calls of every kind, good and bad ones, the logs, metrics, traces and audit hold no text, key or space."""
    async with gateway_kit(probe.target.gateway) as kit:
        word, space, key = probe.word(), f"private-{probe.word().lower()}", kit.key
        faces = kit.faces()
        for face in faces:
            await _every_call(probe, face, space, word)
        http = faces[1]
        assert isinstance(http, HttpFace)
        _, metrics = await http.get("/metrics")
        await kit.process.stop()  # it sends its last spans
        audit = (kit.folder / "audit.jsonl").read_text() if (kit.folder / "audit.jsonl").exists() else ""
        told = {"logs": kit.log, "metrics": metrics.decode(), "traces": b" ".join(kit.spans).decode("latin-1")}
        for kind, text in told.items():
            expect("Retrieve" in text, f"the {kind} tell nothing of the calls")
        secret = key.rpartition("_")[2]
        for kind, text in (told | {"audit": audit}).items():
            for name, private_text in (("a text", word), ("a space's name", space), ("a key", secret)):
                expect(private_text.lower() not in text.lower(), f"the {kind} hold {name}")


async def _every_call(probe: Probe, face: Face, space: str, word: str) -> None:
    client = _client(face)
    await client.add_turns(space, [probe.turn("t1", word)])
    await client.flush_once(space)
    await client.retrieve(space, question(word))
    await client.forget(space, turn_ids=["t1"])
    await client.reset(space)
    _ = [record async for record in client.list_turns(space)]
    await refused(client.add_turns(space, [probe.turn("t1", word, time_zone="Mars/X")]), what="a bad turn")
    await refused(client.retrieve(f"{space}/{word}", question(word)), what="a bad space")


@case("G7", "a system that breaks the protocol is stopped at the gateway", needs=_GATEWAY, once=True)
async def broken_system(probe: Probe) -> None:
    """Bytes that are no answer, another turn's result, too many memories, one without an id, a score that is no number,
    an answer past 16 MiB, an erased turn that nobody named, a foreign error: ADAPTER_PROTOCOL_ERROR, and not a word of
    it."""
    async with gateway_kit(probe.target.gateway) as kit:
        upstream, word = kit.upstreams["odd"], probe.word()
        turn = probe.turn("t1")
        stranger = pb.TurnResult(turn_id=f"other-{word}", state=pb.TURN_STATE_PENDING)
        memory = pb.Memory(memory_id="m", text=word)
        broken: dict[str, tuple[str, Any]] = {
            "bytes": ("Retrieve", b"\xff\xff" + word.encode()),
            "result": ("AddTurns", pb.AddTurnsResponse(results=[stranger])),
            "no result": ("AddTurns", pb.AddTurnsResponse()),
            "many": ("Retrieve", pb.RetrieveResponse(memories=[memory] * 11)),
            "no id": ("Retrieve", pb.RetrieveResponse(memories=[pb.Memory(text=word)])),
            "no number": ("Retrieve", pb.RetrieveResponse(memories=[pb.Memory(memory_id="m", score=float("nan"))])),
            "large": ("Retrieve", pb.RetrieveResponse(memories=[pb.Memory(memory_id="m", text=word * 2_000_000)])),
            "erased": ("Forget", pb.ForgetResponse(erased_turn_ids=[f"other-{word}"])),
            "not found": ("Forget", pb.ForgetResponse(not_found=[f"other-{word}"])),
            "no state": ("AddTurns", pb.AddTurnsResponse(results=[pb.TurnResult(turn_id="t1")])),
        }
        requests = {
            "Retrieve": pb.RetrieveRequest(system="odd", space_id="anna", query="x"),
            "AddTurns": pb.AddTurnsRequest(system="odd", space_id="anna", turns=[wire_turn(turn)]),
            "Forget": pb.ForgetRequest(system="odd", space_id="anna", selector=pb.Selector(turn_ids=["t1"])),
        }
        for face in kit.faces():
            face.watch = probe.face.watch
            for name, (method, answer) in broken.items():
                upstream.scripts[method] = _answers(answer)
                work = face.call(METHODS[method], _copy(requests[method]), Call(deadline=time.monotonic() + 20))
                await refused(work, "ADAPTER_PROTOCOL_ERROR", what=f"an answer that is wrong ({name})")
            upstream.scripts["Retrieve"] = _raises(BareError(2, f"panic at {word}"))
            work = face.call(METHODS["Retrieve"], _copy(requests["Retrieve"]), Call(deadline=time.monotonic() + 20))
            await refused(work, "ADAPTER_PROTOCOL_ERROR", what="an error without the protocol's details")


def _copy(request: Any) -> Any:
    copy = type(request)()
    copy.CopyFrom(request)
    return copy


def _answers(answer: Any) -> Callable[[Any], Awaitable[Any]]:
    async def script(request: Any) -> Any:
        _ = request
        return answer

    return script


def _raises(error: Exception) -> Callable[[Any], Awaitable[Any]]:
    async def script(request: Any) -> Any:
        _ = request
        raise error

    return script


@case("G8", "the gateway changes no answer", needs=_GATEWAY, once=True)
async def same_answers(probe: Probe) -> None:
    """The same calls, right and wrong ones, are answered alike directly and through the gateway, over both faces:
    memories, states, erasures, reasons and fields."""
    words = [probe.word() for _ in range(6)]
    clash = probe.word()
    async with gateway_kit(probe.target.gateway, {"real": probe.target.urls[0]}, probe.target.key) as kit:
        told: dict[str, list[Any]] = {}
        for face in probe.target.faces:
            recorder = _Recorder(face, probe.target.system)
            told[f"directly over {face.name}"] = await _transcript(probe, recorder, words, clash)
        for face in kit.faces():
            recorder = _Recorder(face, "real")
            told[f"through the gateway over {face.name}"] = await _transcript(probe, recorder, words, clash)
    ways = list(told)
    for way in ways[1:]:
        for step, (first, second) in enumerate(zip(told[ways[0]], told[way], strict=True)):
            expect(first == second, f"call {step + 1} ({first[0]}) is answered otherwise {way} than {ways[0]}")


async def _transcript(probe: Probe, recorder: "_Recorder", words: list[str], clash: str) -> list[Any]:
    """What a fixed row of calls tells; it ends with a Reset."""
    client, name = AsyncClient(recorder, timeout_s=30.0), probe.space().space_id
    turns: list[Turn] = [probe.turn(f"t{at}", word, session_id=f"s{at % 2}") for at, word in enumerate(words)]
    await client.describe()
    await client.add_turns(name, turns)
    await client.flush(name)
    await client.add_turns(name, turns[:2])
    for word in words[:3]:
        await client.retrieve(name, question(word), top_k=3)
    _ = [record async for record in client.list_turns(name, page_size=4)]
    if probe.declares(Feature.LIST_MEMORIES):
        _ = [memory async for memory in client.list_memories(name, page_size=4)]
    bad: list[Awaitable[Any]] = [
        client.add_turns(name, [probe.turn("t0", clash, session_id="s0")]),
        client.add_turns(name, [probe.turn("new", clash, time_zone="Mars/X", role="robot")]),
        client.retrieve(name, " "),
        client.retrieve(name, "x", top_k=0),
        client.forget(name),
        client.retrieve("-bad", "x"),
        client.add_turns(name, []),
    ]
    for work in bad:
        await refused(work, "TURN_ID_CONFLICT", "VALIDATION_FAILED", "SELECTOR_MISSING", what="a bad call")
    if probe.declares(Feature.FORGET_TURNS):
        await client.forget(name, turn_ids=["t1", "never"])
    await client.retrieve(name, question(words[1]), top_k=3)
    await client.reset(name)
    await client.retrieve(name, question(words[0]))
    return recorder.said


class _Recorder:
    """A `Service` that passes on under a system's name and takes note of what is told, in `said`.

    Memory ids are told by the order in which they appear; what a gateway may tell otherwise (its name for the system,
    limits on the way, how many are still pending) is left out.
    """

    def __init__(self, service: Face, system: str) -> None:
        self._service = service
        self._system = system
        self._numbers: dict[str, str] = {}
        self.said: list[Any] = []

    async def call(self, method: Any, request: Any, call: Call) -> Any:
        """The answer."""
        request.system = self._system
        try:
            answer = await self._service.call(method, request, call)
        except MemdockError as error:
            self.said.append((method.name, error.reason, [item.field for item in error.fields]))
            raise
        told = normal(answer)
        if method.name == "Describe":
            del told["system"], told["limits"]
        if method.name == "AddTurns":
            told = [[one["turn_id"], one["duplicate"]] for one in told["results"]]
        self.said.append((method.name, self._numbered(told)))
        return answer

    def _numbered(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._numbered(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [self._numbered(one, name) for one in value]
        if name in ("memory_id", "memory_ids", "erased_memory_ids"):
            return self._numbers.setdefault(value, f"memory {len(self._numbers) + 1}")
        return value
