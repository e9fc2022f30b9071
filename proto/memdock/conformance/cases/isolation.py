"""S: no space sees another."""

import asyncio

from memdock.conformance.case import case, expect
from memdock.conformance.probe import Probe, names, question, refused, told_refusal, word_of
from memdock.errors import MemdockError
from memdock.types import Feature
from memdock.v1 import memory_pb2 as pb


@case("S1", "interleaved writers do not cross")
async def writers(probe: Probe) -> None:
    """Two spaces, 50 writers at once, the same turn ids and sentences: each space has its own words and no other's."""
    spaces = [probe.space("a"), probe.space("b")]
    turns = [[probe.turn(f"t{number}", session_id=f"s{number % 3}") for number in range(25)] for _ in spaces]
    jobs = [(space, turn) for pair in zip(*turns, strict=True) for space, turn in zip(spaces, pair, strict=True)]
    await asyncio.gather(*(space.add(turn) for space, turn in jobs))
    for space in spaces:
        await space.settle()
    most = min(100, probe.description.limits.max_top_k)
    for own, other in ((0, 1), (1, 0)):
        space = spaces[own]
        expect(len(await space.turns()) == 25, "a space does not hold just its own turns")
        answer = await space.retrieve("neighbour cello floor", top_k=most)
        texts = " ".join(memory.text for memory in (*answer.memories, *await space.memories()))
        expect(not any(word_of(turn) in texts for turn in turns[other]), "a space shows what was said in another")
        for turn in turns[own][:5]:
            await space.finds(word_of(turn))
        for turn in turns[other][:5]:
            expect(not await space.found(word_of(turn), top_k=most), "a space finds what was said in another")


@case("S2", "names that look alike are apart, and bad names are refused")
async def alike(probe: Probe) -> None:
    """Names of space and session that run together (`a` and `b-c`, `a-b` and `c`), differ in case, hold `.~_` or have
    128 characters are apart. `.`, `..`, an empty and a blank name are refused, and `*` is refused or finds nothing."""
    base = probe.space("x").space_id
    pairs = [("a", "b-c"), ("a-b", "c"), ("A", "b-c"), ("a.b", "c"), ("a~b", "c"), ("a_b", "c"), ("", "a" * 60)]
    pairs.append(("z" * (128 - len(base) - 1), "s"))
    opened = []
    for name, session in pairs:
        space, word = probe.space(f"x-{name}"), probe.word()
        space.space_id = f"{base}-{name}" if name else base
        await space.store(probe.turn("t1", word, session_id=session))
        opened.append((space, word))
    for space, own in opened:
        await space.finds(own)
        for _, word in opened:
            if word != own:
                expect(not await space.found(word), "a space finds what was said in one with a similar name")
    for name in ("", " ", ".", "..", "a/b", "-a", "a" * 129):
        await _refused_name(probe, name)
    for name in ("*", "__all__", "%"):
        await _finds_nothing(probe, name, [word for _, word in opened[:3]])


async def _refused_name(probe: Probe, name: str) -> None:
    request = pb.RetrieveRequest(system=probe.target.system, space_id=name, query="x")
    if probe.over_http is None:
        error = await refused(probe.call("Retrieve", request), what=f"the space {name!r}")
        expect(names(error, "space_id"), "the refusal of a space's name does not name space_id")
        return
    escaped = "".join(f"%{byte:02X}" for byte in name.encode())
    path = f"/v1/systems/{probe.target.system or '-'}/spaces/{escaped}/retrieve"
    told = await probe.raw_http("POST", path, b'{"query": "x"}')
    told_refusal(told, "VALIDATION_FAILED" if name else "PATH_NOT_FOUND", what=f"the space {name!r}")


async def _finds_nothing(probe: Probe, name: str, words: list[str]) -> None:
    for word in words:
        try:
            answer = await probe.plain.retrieve(name, question(word), top_k=20)
        except MemdockError as error:
            expect(error.code == 3, f"the space {name!r} is refused with {error.reason}")
            return
        held = [memory for memory in answer.memories if word.lower() in memory.text.lower()]
        expect(not held, f"the space {name!r} finds what was said in others")


@case("S3", "ids of another space are not found")
async def ids_of_others(probe: Probe) -> None:
    """A memory id, a turn id and a session id of one space are unknown in another: nothing is deleted there or here."""
    one, two, word = probe.space("a"), probe.space("b"), probe.word()
    await one.store(probe.turn("t1", word, session_id="mine"))
    await two.store(probe.turn("t2", session_id="yours"))
    found = await one.found(word)
    expect(found, "the turn is not found")
    before = await one.content(word)
    if probe.declares(Feature.FORGET_MEMORIES):
        ids = [memory.memory_id for memory in found]
        forgotten = await two.client.forget(two.space_id, memory_ids=ids)
        expect(set(forgotten.not_found) == set(ids), "a memory id of another space is not told as not found")
        expect(not forgotten.erased_memory_ids, "a memory of another space is told as erased")
    if probe.declares(Feature.FORGET_TURNS):
        forgotten = await two.client.forget(two.space_id, turn_ids=["t1"])
        expect(forgotten.not_found == ("t1",), "a turn id of another space is not told as not found")
    if probe.declares(Feature.FORGET_SESSIONS):
        await two.client.forget(two.space_id, session_ids=["mine"])
    expect(await one.content(word) == before, "a Forget in one space changed another")


@case("S4", "metadata are labels and nothing else")
async def metadata(probe: Probe) -> None:
    """Metadata named user_id, space_id, $where, with quotes or SQL in key and value: the turn stays in its space alone,
    comes back as it was where metadata come back, and breaks nothing."""
    one, two, word = probe.space("a"), probe.space("b"), probe.word()
    hostile = {
        "user_id": two.space_id,
        "space_id": two.space_id,
        "session_id": "other",
        "$where": "1 == 1",
        "id": "../../etc/passwd",
        'quote"': 'it\'s "quoted"',
        "'; DROP TABLE chunk; --": "x' OR '1'='1",
        "{{7*7}}": "${7*7}",
    }
    other = probe.word()
    await two.store(probe.turn("t1", other))
    before = await two.content(word, other)
    await one.store(probe.turn("t1", word, metadata=hostile))
    await one.finds(word)
    await two.hides(word, "of another space, by metadata")
    expect(await two.content(word, other) == before, "metadata of a turn reached another space")
    for memory in await one.found(word):
        for key, value in memory.metadata.items():
            expect(hostile.get(key, value) == value, "a turn's metadata come back changed")
