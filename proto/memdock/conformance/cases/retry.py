"""I: the same turn again."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from memdock.client import AsyncClient
from memdock.conformance.case import Need, UnprovenError, case, expect
from memdock.conformance.cases.barrier import REFUSAL
from memdock.conformance.probe import SAID_AT, Probe, refused, sentence
from memdock.types import TurnState


@case("I1", "the same turn twice is a duplicate")
async def same_turn_twice(probe: Probe) -> None:
    """A turn that is sent again, before and after it is searchable, is `duplicate` and is stored once."""
    space, word = probe.space(), probe.word()
    turn = probe.turn("t1", word, metadata={"channel": "phone"}, name="Olga", time_zone="Europe/Moscow")
    first = (await space.add(turn)).results[0]
    second = (await space.add(turn)).results[0]
    await space.settle()
    third = (await space.add(turn)).results[0]
    await space.settle()
    expect(not first.duplicate, "a new turn is told as a duplicate")
    expect(second.duplicate and third.duplicate, "the same turn again is not told as a duplicate")
    expect(third.state is TurnState.SEARCHABLE, f"a duplicate is told as {third.state}, not with its present state")
    expect(list(await space.states()) == ["t1"], "ListTurns does not show the turn once")
    await space.finds(word)
    await space.no_text_twice(word)


@case("I1.models", "a duplicate costs nothing", needs=(Need.MODELS,))
async def duplicate_is_free(probe: Probe) -> None:
    """The model is not asked again about a turn that is sent again."""
    space, word = probe.space(), probe.word()
    await space.store(probe.turn("t1", word))
    asked = probe.models.count(word)
    if not asked:
        raise UnprovenError("the system asks no model about a turn")
    await space.store(probe.turn("t1", word))
    expect(probe.models.count(word) == asked, "the model is asked again about a turn that was sent again")


@case("I2", "ten at once are one")
async def ten_at_once(probe: Probe) -> None:
    """The same turn in ten requests at once: one is new, nine are duplicates, and it is stored once."""
    space, word = probe.space(), probe.word()
    turn = probe.turn("t1", word)
    answers = await asyncio.gather(*(space.add(turn) for _ in range(10)))
    new = sum(not answer.results[0].duplicate for answer in answers)
    expect(new == 1, f"{new} of ten equal requests are told as new")
    await space.settle()
    await space.finds(word)
    await space.no_text_twice(word)


@case("I3", "the same id with other content is refused")
async def conflict(probe: Probe) -> None:
    """Another text, role, name, instant, zone, session or metadata is TURN_ID_CONFLICT and changes nothing."""
    space, word = probe.space(), probe.word()
    turn = probe.turn("t1", word, metadata={"a": "1"}, name="Olga", time_zone="Europe/Moscow")
    await space.store(turn)
    before = await space.content(word)
    others = {
        "text": replace(turn, text=sentence(probe.word())),
        "role": replace(turn, role="assistant"),
        "name": replace(turn, name="Anna"),
        "time": replace(turn, time=SAID_AT + timedelta(microseconds=1)),
        "no time": replace(turn, time=None),
        "time_zone": replace(turn, time_zone="Asia/Tokyo"),
        "session_id": replace(turn, session_id="s2"),
        "metadata": replace(turn, metadata={"a": "2"}),
    }
    for field, other in others.items():
        work = space.client.add_turns(space.space_id, [probe.turn(f"new-{field[:4].strip()}"), other])
        error = await refused(work, "TURN_ID_CONFLICT", what=f"a turn id with another {field}")
        expect(
            any("turns[1]" in item.field for item in error.fields) or "turns[1]" in error.message,
            "TURN_ID_CONFLICT does not name the turn of the request",
        )
    await space.settle()
    expect(await space.content(word) == before, "a request that was refused for a conflict changed the space")


@case("I4", "a turn that FAILED is worked on again", needs=(Need.MODELS,))
async def failed_again(probe: Probe) -> None:
    """A FAILED turn that is sent again is a duplicate, is PENDING again, and is found once the model answers."""
    space, word = probe.space(), probe.word()
    turn = probe.turn("t1", word)
    probe.models.fail(word, REFUSAL)
    await space.add(turn)
    flushed = await space.settle()
    if not probe.models.count(word):
        raise UnprovenError("the system asks no model about a turn")
    expect(flushed.failed_count == 1, "a turn that the model refuses is not FAILED")
    probe.models.fail(word, None)
    again = (await space.add(turn)).results[0]
    expect(again.duplicate, "a FAILED turn that is sent again is not told as a duplicate")
    expect(again.state is not TurnState.FAILED, "a FAILED turn that is sent again stays FAILED")
    flushed = await space.settle()
    expect(flushed.failed_count == 0, "a turn that was worked on again still counts as failed")
    await space.finds(word)
    await space.no_text_twice(word)


@case("I5", "turn ids are a space's own")
async def ids_of_another_space(probe: Probe) -> None:
    """The same turn id with other content in another space is independent."""
    one, two, first, second = probe.space(), probe.space(), probe.word(), probe.word()
    await one.store(probe.turn("t1", first))
    added = await two.add(probe.turn("t1", second))
    expect(not added.results[0].duplicate, "a turn id of another space is told as a duplicate")
    await two.settle()
    await one.finds(first)
    await two.finds(second)
    await one.hides(second, "of another space")
    await two.hides(first, "of another space")


@case("I5.tenant", "turn ids are a tenant's own", needs=(Need.OTHER_KEY,))
async def ids_of_another_tenant(probe: Probe) -> None:
    """The same space and turn id under another tenant's key is independent."""
    face = next(other for other in probe.target.other if other.name == probe.face.name)
    mine, first, second = probe.space("same"), probe.word(), probe.word()
    theirs = probe.space("same", AsyncClient(face, system=probe.target.system))
    await mine.store(probe.turn("t1", first))
    added = await theirs.add(probe.turn("t1", second))
    expect(not added.results[0].duplicate, "a turn of another tenant is told as a duplicate")
    await theirs.settle()
    await mine.hides(second, "of another tenant")
    expect(not await theirs.found(first), "another tenant's text is found")


@case("I6", "a late retry after Forget brings nothing back")
async def late_retry(probe: Probe) -> None:
    """A turn that was forgotten and is sent again stays FORGOTTEN: a duplicate, and no call shows its text."""
    space, word = probe.space(), probe.word()
    turn = probe.turn("t1", word)
    await space.store(turn, probe.turn("t2", session_id="s2"))
    await space.erase(turn)
    again = (await space.add(turn)).results[0]
    expect(again.state is TurnState.FORGOTTEN, f"a forgotten turn that is sent again is {again.state}, not FORGOTTEN")
    expect(again.duplicate, "a forgotten turn that is sent again is told as new")
    await space.settle()
    expect((await space.states())["t1"] is TurnState.FORGOTTEN, "a late retry brought a forgotten turn back")
    await space.hides(word, "of a forgotten turn after a late retry")


@case("I7", "Forget with the same request_id answers as before")
async def same_request_id(probe: Probe) -> None:
    """A Forget that is repeated with its request_id answers as the first did, and takes nothing that came later."""
    space, word, later = probe.space(), probe.word(), probe.word()
    turn = probe.turn("t1", word)
    await space.store(turn, probe.turn("t2", session_id="s2"))
    selector = await space.selector(turn)
    first = await space.forget(selector, request_id="once")
    if selector.session_ids:
        await space.store(probe.turn("t3", later))
    second = await space.forget(selector, request_id="once")
    expect(
        (first.erased_memory_ids, first.erased_turn_ids, first.not_found)
        == (second.erased_memory_ids, second.erased_turn_ids, second.not_found),
        "a Forget with the same request_id answers otherwise than the first",
    )
    expect(first.erased_turn_ids or first.erased_memory_ids, "Forget of what is there erases nothing")
    if selector.session_ids:
        await space.finds(later)
