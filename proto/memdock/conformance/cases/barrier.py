"""T: when a write can be found."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from memdock.conformance.case import CheckFailedError, Need, UnprovenError, case, expect
from memdock.conformance.models import Fault
from memdock.conformance.probe import Probe, Space, all_of, question, word_of
from memdock.errors import MemdockError
from memdock.types import Feature, TurnState

SETTLED = (TurnState.SEARCHABLE, TurnState.NO_MEMORY, TurnState.FAILED)
REFUSAL = Fault(status=400)
"""What a model says to one text alone: it will not help to send it again."""


@case("T1", "a turn is found after Flush")
async def found_after_flush(probe: Probe) -> None:
    """After AddTurns and Flush, Retrieve finds a word that only one turn holds; its sources name session and turn."""
    space, word = probe.space(), probe.word()
    others = [probe.turn(f"o{number}", session_id=f"s{number % 3}") for number in range(20)]
    await space.store(*others[:10], probe.turn("wanted", word, session_id="s7"), *others[10:])
    found = await space.found(word)
    expect(found, "the turn is not found by a word that only it holds")
    if probe.declares(Feature.SOURCES):
        sources = {(source.session_id, source.turn_id) for memory in found for source in memory.sources}
        expect(("s7", "wanted") in sources, "the sources do not name the session and the turn")
    states = await space.states()
    expect(len(states) == 21 and all_of(states, [TurnState.SEARCHABLE]), "ListTurns does not tell all as SEARCHABLE")
    for turn in others:
        await space.finds(word_of(turn))


@case("T2", "done is never told too early", needs=(Need.MODELS,))
async def never_done_too_early(probe: Probe) -> None:
    """While the model is slow with a turn, every Flush answers in time with done=false, and done=true only after it."""
    space, word = probe.space(), probe.word()
    probe.models.hold(word)
    await space.add(probe.turn("t1", word))
    for _ in range(5):
        flushed = await probe.plain.flush_once(space.space_id, timeout_s=0.4)
        state = (await space.states())["t1"]
        await _not_done_while(state, flushed.done, flushed.pending)
    await probe.models.arrival(word)
    probe.models.release(word)
    await space.settle()
    await space.finds(word)


async def _not_done_while(state: TurnState, done: bool, pending: int) -> None:
    if state is TurnState.PENDING:
        expect(not done, "Flush says done while a turn that was accepted before is PENDING")
        expect(pending >= 1, "Flush counts no pending turn while one is PENDING")


@case("T3", "one turn that fails is told, and costs no other", needs=(Need.MODELS,))
async def one_failure(probe: Probe) -> None:
    """The model refuses one text: that turn is FAILED with an error, failed_count is 1, the others are searchable."""
    space, words = probe.space(), [probe.word() for _ in range(3)]
    probe.models.fail(words[1], REFUSAL)
    await space.add(*(probe.turn(f"t{number}", word) for number, word in enumerate(words)))
    flushed = await space.settle()
    if not probe.models.count(words[1]):
        raise UnprovenError("the system asks no model about a turn")
    expect(flushed.failed_count == 1, f"failed_count is {flushed.failed_count} after one turn failed")
    expect([one.turn_id for one in flushed.failed] == ["t1"], "Flush does not name the turn that failed")
    states = await space.states()
    expect(states["t1"] is TurnState.FAILED, f"the turn is {states['t1']}, not FAILED")
    for word in (words[0], words[2]):
        await space.finds(word)
    probe.models.fail(words[1], None)  # so that it can be asked about
    await space.hides(words[1], "of a turn that FAILED")


@case("T4", "nothing worth keeping is NO_MEMORY", Feature.NO_MEMORY, needs=(Need.MODELS,))
async def no_memory(probe: Probe) -> None:
    """A turn in which the model finds nothing worth remembering is NO_MEMORY, not a silent success."""
    space, word, kept = probe.space(), probe.word(), probe.word()
    probe.models.nothing(word)
    await space.store(probe.turn("small", word, text=f"ok thanks {word} bye"), probe.turn("kept", kept))
    if not probe.models.count(word):
        raise UnprovenError("the system asks no model about a turn")
    states = await space.states()
    expect(states["small"] is TurnState.NO_MEMORY, f"the turn is {states['small']}, not NO_MEMORY")
    expect(states["kept"] is TurnState.SEARCHABLE, f"a turn worth keeping is {states['kept']}")


@case("T5", "a short Flush answers, and the work goes on")
async def short_flush(probe: Probe) -> None:
    """Flush with 100 ms answers with the truth, done or not, and never with an error; the work completes either way."""
    space = probe.space()
    turns = [probe.turn(f"t{number}") for number in range(40)]
    await space.add(*turns)
    flushed = await probe.plain.flush_once(space.space_id, timeout_s=0.1)
    if flushed.done:
        expect(all_of(await space.states(), SETTLED), "Flush says done while turns are PENDING")
    elif not flushed.pending:  # the last turn ended as the call returned
        again = await probe.plain.flush_once(space.space_id, timeout_s=0.1)
        expect(again.done, "Flush is not done and counts no pending turn")
    await space.settle()
    expect(all_of(await space.states(), [TurnState.SEARCHABLE]), "a turn is lost behind a Flush that ran out of time")


@case("T6", "what waits in a buffer counts as pending", Feature.BUFFERING)
async def buffered(probe: Probe) -> None:
    """Before Flush a turn is either counted as pending or can be found; Flush closes the buffer."""
    space, word = probe.space(), probe.word()
    await space.add(probe.turn("t1", word))
    answer = await probe.plain.retrieve(space.space_id, question(word))
    state = (await space.states())["t1"]
    if state is TurnState.PENDING:
        expect(answer.pending == 1, "a turn waits in a buffer and Retrieve counts none as pending")
    else:
        await space.finds(word)
    await space.settle()
    await space.finds(word)


@case("T7", "a client that leaves in the middle leaves no half")
async def client_gone(probe: Probe) -> None:
    """AddTurns cut off at twenty moments: all turns of a request are accepted and completed, or all are absent."""
    space = probe.space()
    batches = [[probe.turn(f"b{batch}-{number}") for number in range(5)] for batch in range(20)]
    for number, batch in enumerate(batches):
        call = asyncio.create_task(probe.plain.add_turns(space.space_id, batch))
        await asyncio.wait({call}, timeout=number * 0.0004)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    await space.settle()
    # A request that was on its way may be accepted after the first look.
    held = await _when_still(space)
    for batch in batches:
        there = [turn.turn_id for turn in batch if turn.turn_id in held]
        expect(len(there) in (0, len(batch)), "a request that was cut off was accepted in part")
    expect(all_of(held, SETTLED), "a turn of a request that was cut off stays PENDING after Flush")
    for batch in batches:
        added = await space.add(*batch)
        expect(
            all(result.duplicate == (result.turn_id in held) for result in added.results),
            "a turn that was sent again is told as new although it is there, or the other way round",
        )


async def _when_still(space: Space) -> dict[str, TurnState]:
    before = await space.states()
    while True:
        await asyncio.sleep(0.2)
        await space.settle()
        after = await space.states()
        if after == before:
            return after
        before = after


@case("T8", "a kill loses nothing that was accepted", needs=(Need.LAUNCH,), alone=True, once=True)
async def killed(probe: Probe) -> None:
    """Killed after acceptance and started again: every turn is completed or FAILED, none vanishes or is
    there twice."""
    spaces = [probe.space() for _ in range(3)]
    turns = {space.space_id: [probe.turn(f"t{number}") for number in range(30)] for space in spaces}
    for space in spaces:
        for start in range(0, 30, 5):
            await space.add(*turns[space.space_id][start : start + 5])
    await probe.target.restart()
    for space in spaces:
        sent = turns[space.space_id]
        await space.settle()
        states = await space.states()
        expect(list(states) == [turn.turn_id for turn in sent], "turns that were accepted vanished in a kill, or moved")
        expect(all_of(states, SETTLED), "a turn is still PENDING after a kill and a Flush")
        words = [word_of(turn) for turn in sent if states[turn.turn_id] is TurnState.SEARCHABLE]
        for word in words:
            await space.finds(word)
        await space.no_text_twice(*words[:5])


@case("T9", "pending is told until it is none")
async def pending_told(probe: Probe) -> None:
    """Retrieve's `pending` never exceeds what was sent, agrees with ListTurns, and is 0 after Flush."""
    space = probe.space()
    turns = [probe.turn(f"t{number}") for number in range(10)]
    await space.add(*turns)
    before = await probe.plain.retrieve(space.space_id, "neighbour")
    expect(before.pending <= 10, "Retrieve counts more pending turns than were sent")
    await space.settle()
    after = await space.retrieve("neighbour")
    expect(after.pending == 0, "Retrieve counts pending turns after Flush said done")
    expect(after.failed_count == 0, "Retrieve counts failed turns where none failed")


@case("T9.models", "pending and failed show in answers", needs=(Need.MODELS,))
async def pending_and_failed_shown(probe: Probe) -> None:
    """Retrieve's `pending` is above 0 while the model works, and a failure stays visible in every later answer."""
    space, word, good = probe.space(), probe.word(), probe.word()
    await space.store(probe.turn("t0", good))
    probe.models.hold(word)
    probe.models.fail(word, REFUSAL)
    await space.add(probe.turn("t1", word))
    await probe.plain.flush_once(space.space_id, timeout_s=0.1)
    await probe.models.arrival(word)
    expect((await space.retrieve(question(good))).pending == 1, "Retrieve does not tell that a turn is pending")
    probe.models.release(word)
    await space.settle()
    for _ in range(2):
        answer = await space.retrieve(question(good))
        expect((answer.pending, answer.failed_count) == (0, 1), "a failure does not stay visible in Retrieve's answers")
        expect((await space.settle()).failed_count == 1, "a failure does not stay visible in Flush's answers")


@case("T10", "waiting Flushes delay nobody")
async def flushes_wait_aside(probe: Probe) -> None:
    """64 Flushes at once hold up a Retrieve of another space by no more than two seconds."""
    space, quiet, word = probe.space(), probe.space(), probe.word()
    await quiet.store(probe.turn("t1", word))
    await space.add(*(probe.turn(f"t{number}") for number in range(20)))
    flushes = [asyncio.create_task(probe.plain.flush_once(space.space_id, timeout_s=20)) for _ in range(64)]
    longest_s = 0.0
    for _ in range(5):
        await asyncio.sleep(0.1)  # nothing tells from outside when the Flushes have arrived
        started = time.monotonic()
        await probe.plain.retrieve(quiet.space_id, question(word))
        longest_s = max(longest_s, time.monotonic() - started)
    await _gather(flushes)
    expect(longest_s < 2.0, f"a Retrieve took {longest_s:.1f} s beside 64 Flushes")


@case("T10.models", "waiting Flushes take no place", needs=(Need.MODELS,))
async def flushes_take_no_place(probe: Probe) -> None:
    """A Retrieve is answered while 64 Flushes wait for a turn that the model holds."""
    space, held, word = probe.space(), probe.word(), probe.word()
    await space.store(probe.turn("t1", word))
    probe.models.hold(held)
    await space.add(probe.turn("t2", held))
    flushes = [asyncio.create_task(probe.plain.flush_once(space.space_id, timeout_s=8)) for _ in range(64)]
    await probe.models.arrival(held)
    await probe.plain.retrieve(space.space_id, question(word))
    ended = [task for task in flushes if task.done()]
    probe.models.release(held)
    await _gather(flushes)
    expect(not ended, "a Flush said that it was done, or failed, while the model held a turn")


async def _gather(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, MemdockError):
            raise CheckFailedError(f"one of 64 Flushes at once is refused: {outcome.reason}")
        if isinstance(outcome, BaseException):
            raise outcome
