"""X: the space as if never used."""

import asyncio

from memdock.conformance.case import Need, case, expect
from memdock.conformance.cases.forget import stays_hidden
from memdock.conformance.probe import Probe
from memdock.errors import AbortedError


@case("X1", "Reset empties one space alone")
async def empties(probe: Probe) -> None:
    """After Reset the space is empty, pending turns too; a sibling with the same turns is the same to the byte."""
    space, sibling = probe.space("a"), probe.space("a-b")
    words = [probe.word() for _ in range(6)]
    turns = [probe.turn(f"t{number}", word) for number, word in enumerate(words)]
    await sibling.store(*turns)
    before = await sibling.content(*words[:3])
    await space.store(*turns[:4])
    await space.add(*turns[4:])
    await space.client.reset(space.space_id)
    expect(not await space.turns(), "ListTurns shows turns after a Reset")
    expect(not await space.memories(), "ListMemories shows memories after a Reset")
    for word in words:
        await space.hides(word, "of before a Reset")
    await space.settle()
    for word in words:
        await space.hides(word, "of before a Reset, after a Flush")
    expect(await sibling.content(*words[:3]) == before, "a Reset changed a sibling space")


@case("X2", "a Reset with work in flight stays empty", needs=(Need.MODELS,))
async def in_flight(probe: Probe) -> None:
    """Reset while the model works on turns: nothing of them comes back, then or 30 s later."""
    space, words = probe.space(), [probe.word() for _ in range(4)]
    probe.models.hold(words[0])
    await space.add(*(probe.turn(f"t{number}", word) for number, word in enumerate(words)))
    await probe.plain.flush_once(space.space_id, timeout_s=0.1)
    await probe.models.arrival(words[0])
    resetting = asyncio.create_task(_reset(probe, space.space_id))
    await asyncio.wait({resetting}, timeout=0.3)
    probe.models.release(words[0])
    await resetting
    expect(not await space.turns(), "ListTurns shows turns after a Reset with work in flight")
    for word in words[1:]:
        await space.hides(word, "of before a Reset")
    await stays_hidden(space, words[0], "of work that was in flight at a Reset", 30.0)
    expect(not await space.turns(), "turns of before a Reset came back")


async def _reset(probe: Probe, space_id: str) -> None:
    while True:
        try:
            await probe.plain.reset(space_id, request_id="reset-in-flight")
        except AbortedError as error:  # the work in flight is longer than the call
            expect(error.retry_after_s is not None, "IN_PROGRESS does not say when to ask again")
            await asyncio.sleep(min(error.retry_after_s or 0.1, 1.0))
        else:
            return


@case("X3", "a space is as new after Reset")
async def as_new(probe: Probe) -> None:
    """After Reset old turn ids are welcome, with old or with other content, and forgotten ones too."""
    space, word, other = probe.space(), probe.word(), probe.word()
    await space.store(probe.turn("t1", word), probe.turn("t2", session_id="s2"))
    await space.erase(probe.turn("t1", word))
    await space.client.reset(space.space_id)
    added = await space.add(probe.turn("t1", word), probe.turn("t2", other, session_id="s2"))
    expect(not any(result.duplicate for result in added.results), "a turn of before a Reset is told as a duplicate")
    flushed = await space.settle()
    expect(not flushed.failed_count, "a turn fails after a Reset")
    await space.finds(word)
    await space.finds(other)


@case("X4", "Reset of nothing, and twice, is fine")
async def twice(probe: Probe) -> None:
    """Reset of a space that was never used, and a second Reset, succeed and tell that nothing went; the same request_id
    answers as the first time and takes nothing that came later."""
    space, word = probe.space(), probe.word()
    for _ in range(2):
        done = await probe.plain.reset(space.space_id)
        expect((done.erased_turns, done.erased_memories) == (0, 0), "Reset of an empty space tells that something went")
    await space.store(probe.turn("t1", word))
    first = await probe.plain.reset(space.space_id, request_id="once")
    expect(first.erased_turns == 1, "Reset does not tell how many turns went")
    await space.store(probe.turn("t1", word))
    again = await probe.plain.reset(space.space_id, request_id="once")
    expect(again.erased_turns == 1, "a Reset with the same request_id answers otherwise than the first")
    await space.finds(word)
