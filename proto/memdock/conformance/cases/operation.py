"""P: deadlines, health, cost, and an orderly end."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import aiohttp

from memdock.conformance.case import CheckFailedError, Need, UnprovenError, case, expect
from memdock.conformance.cases.errors import request_bytes
from memdock.conformance.faces import url_path
from memdock.conformance.models import Seen
from memdock.conformance.probe import Probe, question, word_of
from memdock.errors import MemdockError
from memdock.service import METHODS, Call
from memdock.types import Feature, ModelUsage
from memdock.v1 import memory_pb2 as pb


@case("P5", "a deadline holds, and loses nothing", needs=(Need.MODELS,), alone=True)
async def deadline(probe: Probe) -> None:
    """With 200 ms a Retrieve that the model holds is DEADLINE_EXCEEDED within 400 ms, told by the server; what was
    accepted before is not lost."""
    space, word, asked = probe.space(), probe.word(), probe.word()
    probe.models.hold(word)
    probe.models.hold(asked)
    await space.add(probe.turn("t1", word))
    request = pb.RetrieveRequest(system=probe.target.system, space_id=space.space_id, query=question(asked))
    started = time.monotonic()
    error = await _deadline_error(probe, request)
    took_s = time.monotonic() - started
    reached = probe.models.count(asked)
    probe.models.release(word)
    probe.models.release(asked)
    await space.settle()
    await space.finds(word)
    if not reached:
        raise UnprovenError("Retrieve asks no model, so nothing holds it")
    expect(error is not None, "a Retrieve that the model holds is answered")
    reason = error.reason if error else ""
    expect(reason == "DEADLINE_EXCEEDED", f"a deadline that passes is told as {reason}")
    expect(took_s < 0.4, f"a deadline of 200 ms is told after {took_s * 1e3:.0f} ms")


async def _deadline_error(probe: Probe, request: Any) -> MemdockError | None:
    if probe.over_http is not None:
        path = url_path(METHODS["Retrieve"], {"system": request.system, "space_id": request.space_id})
        sent = {"x-timeout-ms": "200"}
        told = await probe.raw_http("POST", path, request_bytes(probe, request), headers=sent, wait_s=10.0)
        return told.error
    try:
        await probe.face.call(METHODS["Retrieve"], request, Call(deadline=time.monotonic() + 0.2))
    except MemdockError as error:
        return error
    return None


@case("P6", "health tells the truth", once=True)
async def health(probe: Probe) -> None:
    """The gRPC health service says SERVING and /livez and /readyz are 200 while calls are answered."""
    for face in probe.target.faces:
        expect(await face.is_ready(), f"the system answers calls and is not ready over {face.name}")
    http = next((face for face in probe.target.faces if face.name == "http"), None)
    if http is None:
        raise UnprovenError("no HTTP address was given, where /livez is")
    status, _ = await _page(http, "/livez")
    expect(status == 200, f"/livez answers {status}")


async def _page(face: Any, path: str) -> tuple[int, bytes]:
    try:
        got: tuple[int, bytes] = await face.get(path)
    except (aiohttp.ClientError, TimeoutError):
        return 0, b""
    return got


@case("P6.store", "readiness goes down with the store", needs=(Need.STORE,), alone=True, once=True)
async def readiness(probe: Probe) -> None:
    """With the store away readiness goes down while /livez stays, and calls are errors, never empty answers; with the
    store back it comes back by itself and nothing is lost."""
    space, word = probe.space(), probe.word()
    await space.store(probe.turn("t1", word))
    http = next((face for face in probe.target.faces if face.name == "http"), None)
    await probe.target.command(probe.target.commands.store_down)
    try:
        for face in probe.target.faces:
            await _becomes(face, False)
        if http is not None:
            expect((await _page(http, "/livez"))[0] == 200, "/livez goes down with the store")
        await _fails(probe, space.space_id, word)
    finally:
        await probe.target.command(probe.target.commands.store_up)
    for face in probe.target.faces:
        await _becomes(face, True)
    await space.finds(word)


async def _becomes(face: Any, ready: bool) -> None:
    ends = time.monotonic() + 30.0
    while await face.is_ready() is not ready:
        if time.monotonic() > ends:
            raise CheckFailedError(f"readiness over {face.name} does not become {ready} within 30 s")
        await asyncio.sleep(0.1)


async def _fails(probe: Probe, space_id: str, word: str) -> None:
    try:
        answer = await probe.plain.retrieve(space_id, question(word))
    except MemdockError as error:
        expect(error.code in (4, 14), f"without its store Retrieve is told as {error.reason}, not as unavailable")
        return
    held = any(word.lower() in memory.text.lower() for memory in answer.memories)
    expect(held, "without its store Retrieve answers as if nothing were there")


@case("P7", "cost is counted", Feature.USAGE, needs=(Need.MODELS,), alone=True)
async def usage(probe: Probe) -> None:
    """Usage is what the model server counted, in calls and tokens, or is marked as estimated: of writing in Flush's
    `space_usage`, of reading in Retrieve's answer; and `space_usage` holds both."""
    space, start = probe.space(), len(probe.models.answered)
    await space.add(probe.turn("t1"))
    flushed = await probe.plain.flush(space.space_id, timeout_s=60)
    written = probe.models.answered[start:]
    if not written:
        raise UnprovenError("the system asks no model about a turn")
    _same_cost(written, flushed.space_usage, "of writing a turn")
    answer = await probe.plain.retrieve(space.space_id, question(probe.word()))
    read = probe.models.answered[start + len(written) :]
    _same_cost(read, answer.usage, "of a Retrieve")
    flushed = await probe.plain.flush(space.space_id, timeout_s=60)
    _same_cost([*written, *read], flushed.space_usage, "of the space")


def _same_cost(seen: Sequence[Seen], told: Sequence[ModelUsage], what: str) -> None:
    calls = sum(one.calls for one in told)
    expect(calls == len(seen), f"the usage {what} tells {calls} calls of models, and {len(seen)} came")
    for kind in ("input_tokens", "output_tokens"):
        counted = sum(getattr(one, kind) for one in seen)
        given = sum(getattr(one, kind) for one in told)
        estimated = any(one.estimated for one in told)
        expect(
            estimated or given == counted, f"the usage {what} tells {given} {kind}; the model server counted {counted}"
        )


@case("P8", "an orderly end loses nothing", needs=(Need.LAUNCH,), alone=True, once=True)
async def orderly_end(probe: Probe) -> None:
    """SIGTERM: a call that is inside is answered, new work is refused as UNAVAILABLE, the process ends, and after the
    next start nothing that was accepted is lost."""
    assert probe.target.process is not None
    space = probe.space()
    turns = [probe.turn(f"t{number}") for number in range(40)]
    held = probe.word()
    if probe.target.models is not None:
        probe.models.hold(held)
    await space.add(*turns)
    inside = asyncio.create_task(probe.plain.retrieve(space.space_id, question(held)))
    if probe.target.models is not None:
        await _arrives(probe, held, inside)
    else:
        await asyncio.wait({inside}, timeout=0.05)
    probe.target.process.terminate()
    try:
        await _refuses_new_work(probe, space.space_id)
    finally:
        if probe.target.models is not None:
            probe.models.release(held)
    outcome = (await asyncio.gather(inside, return_exceptions=True))[0]
    ended = await probe.target.process.wait(60.0)
    if not ended:
        await probe.target.process.kill()
    await probe.target.start()
    expect(not isinstance(outcome, BaseException), f"a call inside at SIGTERM is cut off: {outcome!r:.120}")
    expect(ended, "the process does not end within 60 s of SIGTERM")
    await space.settle()
    expect(list(await space.states()) == [turn.turn_id for turn in turns], "an orderly end lost turns")
    for turn in turns[::8]:
        await space.finds(word_of(turn))


async def _arrives(probe: Probe, word: str, inside: "asyncio.Task[Any]") -> None:
    """Waits until the model has the query; a system that asks no model answers instead."""
    arrival = asyncio.create_task(probe.models.arrival(word, 20.0))
    await asyncio.wait({arrival, inside}, return_when=asyncio.FIRST_COMPLETED)
    arrival.cancel()
    await asyncio.gather(arrival, return_exceptions=True)


async def _refuses_new_work(probe: Probe, space_id: str) -> None:
    assert probe.target.process is not None
    ends = time.monotonic() + 15.0
    while not probe.target.process.ended:
        try:
            await probe.plain.flush_once(space_id, timeout_s=0.1)
        except MemdockError as error:
            expect(error.code == 14, f"after SIGTERM new work is refused with {error.reason}, not as UNAVAILABLE")
            return
        if time.monotonic() > ends:
            raise CheckFailedError("15 s after SIGTERM new work is still taken")
        await asyncio.sleep(0.02)
