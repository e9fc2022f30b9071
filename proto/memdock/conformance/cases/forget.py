"""F: forgetting."""

import asyncio

from memdock.conformance.case import Need, case, expect
from memdock.conformance.probe import Probe, Space, refused, word_of
from memdock.errors import MemdockError
from memdock.types import Component, Feature, Forgotten, TurnState
from memdock.v1 import memory_pb2 as pb


@case("F1", "a memory is gone from every call", Feature.FORGET_MEMORIES)
async def by_memory(probe: Probe) -> None:
    """Forget by memory id: the memory and the turns that it was made from are gone from Retrieve and ListMemories at
    once, ListTurns tells them as FORGOTTEN, and what stands beside stays."""
    space, word, kept = probe.space(), probe.word(), probe.word()
    await space.store(probe.turn("t1", word, session_id="s1"), probe.turn("t2", kept, session_id="s2"))
    await _forget_memory(space, word)
    await space.hides(word, "of a memory that was forgotten")
    await space.finds(kept)
    states = await space.states()
    expect(
        states == {"t1": TurnState.FORGOTTEN, "t2": TurnState.SEARCHABLE}, "ListTurns does not tell what was forgotten"
    )


async def _forget_memory(space: Space, word: str) -> Forgotten:
    found = await space.found(word)
    expect(found, "the turn is not found before it is forgotten")
    ids = [memory.memory_id for memory in found]
    forgotten = await space.client.forget(space.space_id, memory_ids=ids)
    expect(
        set(ids) <= {*forgotten.erased_memory_ids, *forgotten.not_found}, "Forget does not tell what became of an id"
    )
    return forgotten


@case("F1.restart", "what was forgotten stays so after a kill", needs=(Need.LAUNCH,), alone=True, once=True)
async def gone_after_restart(probe: Probe) -> None:
    """Forget, kill, start: no call shows the text, its turn stays FORGOTTEN, and a late retry brings nothing back."""
    space, word, kept = probe.space(), probe.word(), probe.word()
    turn = probe.turn("t1", word, session_id="s1")
    await space.store(turn, probe.turn("t2", kept, session_id="s2"))
    await space.erase(turn)
    await probe.target.restart()
    await space.hides(word, "that was forgotten before a kill")
    await space.finds(kept)
    again = (await space.add(turn)).results[0]
    expect(again.state is TurnState.FORGOTTEN, "a kill made the server forget that it has forgotten a turn")
    await space.settle()
    await space.hides(word, "that was forgotten before a kill, after a late retry")


@case("F2", "of a pair one half goes and one stays", Feature.FORGET_TURNS)
async def by_turn(probe: Probe) -> None:
    """Forget by turn id: the turn's text is gone from every call, the other half of its pair is still found."""
    space, word, reply = probe.space(), probe.word(), probe.word()
    await space.store(
        probe.turn("t1", word, role="user"),
        probe.turn("t2", reply, role="assistant", text=f"Thank you I shall remember {reply} and the violin"),
    )
    forgotten = await space.client.forget(space.space_id, turn_ids=["t1"])
    expect("t1" in forgotten.erased_turn_ids, "Forget of a turn does not tell that this turn is erased")
    expect(set(forgotten.erased_turn_ids) == {"t1"}, "Forget of a turn tells others as erased")
    await space.hides(word, "of a turn that was forgotten")
    await space.finds(reply)
    expect(await space.states() == {"t1": TurnState.FORGOTTEN, "t2": TurnState.SEARCHABLE}, "ListTurns tells otherwise")


@case("F3", "a session of 250 goes whole", Feature.FORGET_SESSIONS)
async def by_session(probe: Probe) -> None:
    """Forget by session id takes all 250 turns of the session, and none of its neighbours."""
    space, limits = probe.space(), probe.description.limits
    long = [probe.turn(f"long-{number}", session_id="long") for number in range(250)]
    near = [probe.turn(f"near-{number}", session_id="longer") for number in range(5)]
    turns = [*long[:100], *near, *long[100:]]
    for start in range(0, len(turns), min(100, limits.max_turns_per_request)):
        await space.add(*turns[start : start + min(100, limits.max_turns_per_request)])
    await space.settle()
    forgotten = await space.client.forget(space.space_id, session_ids=["long"])
    expect(
        len(set(forgotten.erased_turn_ids)) == 250, f"{len(forgotten.erased_turn_ids)} of 250 turns are told as erased"
    )
    answer = await space.retrieve("neighbour cello floor", top_k=min(100, limits.max_top_k))
    texts = " ".join(memory.text for memory in (*answer.memories, *await space.memories()))
    expect(not any(word_of(turn) in texts for turn in long), "a turn of a forgotten session is still shown")
    for turn in near:
        await space.finds(word_of(turn))
    states = await space.states()
    expect(
        sum(state is TurnState.FORGOTTEN for state in states.values()) == 250, "ListTurns does not tell 250 FORGOTTEN"
    )


@case("F4", "no selector, or two, deletes nothing")
async def bad_selectors(probe: Probe) -> None:
    """No selector, an empty one, empty lists and two lists at once are SELECTOR_MISSING; nothing is deleted."""
    space, word = probe.space(), probe.word()
    await space.store(probe.turn("t1", word))
    before = await space.content(word)
    selectors = {
        "no selector": None,
        "an empty selector": pb.Selector(),
        "two selectors": pb.Selector(turn_ids=["t1"], session_ids=["s1"]),
        "three selectors": pb.Selector(memory_ids=["m"], turn_ids=["t1"], session_ids=["s1"]),
    }
    for name, selector in selectors.items():
        request = pb.ForgetRequest(system=probe.target.system, space_id=space.space_id, selector=selector)
        await refused(probe.call("Forget", request), "SELECTOR_MISSING", what=name)
    expect(await space.content(word) == before, "a Forget that was refused changed the space")


@case("F5", "a dry run tells and takes nothing", Feature.FORGET_DRY_RUN)
async def dry_run(probe: Probe) -> None:
    """dry_run deletes nothing, and lists exactly what the real call then deletes."""
    space, word = probe.space(), probe.word()
    turn = probe.turn("t1", word, session_id="s1")
    await space.store(turn, probe.turn("t2", session_id="s1"), probe.turn("t3", session_id="s2"))
    before = await space.content(word)
    features = (Feature.FORGET_TURNS, Feature.FORGET_SESSIONS, Feature.FORGET_MEMORIES)
    for selector in [await space.selector(turn, feature) for feature in features if probe.declares(feature)]:
        await space.forget(selector, dry_run=True)
    expect(await space.content(word) == before, "a dry run changed the space")
    selector = await space.selector(turn)
    told = await space.forget(selector, dry_run=True)
    done = await space.forget(selector)
    expect(set(told.erased_memory_ids) == set(done.erased_memory_ids), "a dry run lists other memories than go")
    expect(set(told.erased_turn_ids) == set(done.erased_turn_ids), "a dry run lists other turns than go")
    expect(set(told.not_found) == set(done.not_found), "a dry run finds other ids missing")


@case("F6", "an unknown id is told, and is no error")
async def unknown_ids(probe: Probe) -> None:
    """Ids that the space does not hold come back in not_found; the call succeeds, twice, and takes what is there."""
    space, word = probe.space(), probe.word()
    turn = probe.turn("t1", word)
    await space.store(turn)
    if probe.declares(Feature.FORGET_TURNS):
        for _ in range(2):
            forgotten = await space.client.forget(space.space_id, turn_ids=["never"])
            expect(forgotten.not_found == ("never",), "an unknown turn id is not told in not_found")
    if probe.declares(Feature.FORGET_MEMORIES):
        for unknown in ("never", "00000000-0000-0000-0000-000000000000"):
            forgotten = await space.client.forget(space.space_id, memory_ids=[unknown])
            expect(forgotten.not_found == (unknown,), "an unknown memory id is not told in not_found")
    if probe.declares(Feature.FORGET_SESSIONS):
        forgotten = await space.client.forget(space.space_id, session_ids=["never"])
        expect(not forgotten.erased_turn_ids, "Forget of an unknown session erases turns")
    await space.finds(word)
    await space.erase(turn)
    await space.hides(word, "that was forgotten")


@case("F7", "what is forgotten while it is worked on does not come back", needs=(Need.MODELS,))
async def pending_forgotten(probe: Probe) -> None:
    """Forget of a turn, or of its session, while the model works on it: nothing of it comes back from any call."""
    for feature in (Feature.FORGET_TURNS, Feature.FORGET_SESSIONS):
        if not probe.declares(feature):
            continue
        space, word, kept = probe.space(), probe.word(), probe.word()
        turn = probe.turn("t1", word, session_id="s1")
        await space.store(probe.turn("t0", kept, session_id="s0"))
        probe.models.hold(word)
        await space.add(turn)
        await probe.plain.flush_once(space.space_id, timeout_s=0.1)
        await probe.models.arrival(word)
        forgetting = asyncio.create_task(space.forget(await space.selector(turn, feature)))
        await asyncio.wait({forgetting}, timeout=0.3)
        probe.models.release(word)
        await forgetting
        await space.settle()
        await stays_hidden(space, word, "that was forgotten while it was worked on", 3.0)
        expect((await space.states())["t1"] is TurnState.FORGOTTEN, "a turn forgotten while pending is not FORGOTTEN")
        await space.finds(kept)


async def stays_hidden(space: Space, word: str, after: str, within_s: float) -> None:
    """Looks again and again for as long as the settings say, at most `within_s`."""
    for _ in range(max(1, round(min(within_s, space.probe.settings.settle_s)))):
        await space.hides(word, after)
        await asyncio.sleep(1.0)
    await space.hides(word, after)


@case("F8", "what is left is told by component")
async def residue(probe: Probe) -> None:
    """Forget and Reset answer with one entry for each component; one that was not searched says why."""
    space = probe.space()
    turn = probe.turn("t1")
    await space.store(turn, probe.turn("t2", session_id="s2"))
    answers = {
        "Forget": (await space.forget(await space.selector(turn))).residual,
        "Reset": (await space.client.reset(space.space_id)).residual,
    }
    for call, residual in answers.items():
        components = [one.component for one in residual]
        expect(components, f"{call} does not tell what is left in any component")
        expect(len(components) == len(set(components)), f"{call} tells a component twice")
        expect(Component.UNKNOWN not in components, f"{call} tells of a component without a name")
        for one in residual:
            expect(one.verified or one.note, f"{call}: {one.component} was not searched, and no note says why")


@case("F8.fault", "a component that fails is told", needs=(Need.COMPONENT,), alone=True, once=True)
async def failing_component(probe: Probe) -> None:
    """While a component cannot erase, Forget is an error, or tells that component as not verified."""
    space = probe.space()
    turn = probe.turn("t1")
    await space.store(turn)
    await probe.target.command(probe.target.commands.component_break)
    try:
        forgotten = await space.forget(await space.selector(turn))
        doubtful = [one for one in forgotten.residual if not one.verified]
        expect(doubtful, "a component failed to erase, and Forget tells every component as verified")
        expect(any(one.items or one.note for one in doubtful), "Forget does not tell what a failing component has left")
    except MemdockError as error:
        expect(error.code not in (3, 5, 12), f"a failing component is told as {error.reason}")
    finally:
        await probe.target.command(probe.target.commands.component_mend)
