"""O and E: the order of turns, and when they were said."""

import asyncio
from datetime import UTC, datetime

import orjson

from memdock.conformance.case import case, expect
from memdock.conformance.faces import as_json
from memdock.conformance.probe import Probe, Space, names, question, told_refusal, word_of
from memdock.convert import wire_turn
from memdock.errors import MemdockError
from memdock.types import Feature, Memory
from memdock.v1 import memory_pb2 as pb

INSTANT = datetime(2024, 3, 10, 23, 30, tzinfo=UTC)
"""In Tokyo it is the 11th already, in Los Angeles the 10th."""


@case("O1", "concurrent writes of one session lose nothing")
async def concurrent_adds(probe: Probe) -> None:
    """Twenty single-turn requests at once in one session: all twenty are there, and are found."""
    space = probe.space()
    turns = [probe.turn(f"t{number}") for number in range(20)]
    await asyncio.gather(*(space.add(turn) for turn in turns))
    await space.settle()
    expect(sorted(await space.states()) == sorted(turn.turn_id for turn in turns), "a concurrent turn is lost")
    for turn in turns:
        await space.finds(word_of(turn))


@case("O2", "order is kept")
async def order_kept(probe: Probe) -> None:
    """ListTurns tells the turns in the order of the list in each request, and requests in the order of acceptance."""
    space = probe.space()
    order = [f"t{number}" for number in (7, 3, 9, 1, 8, 2, 6, 4)]
    for start in (0, 3, 5):
        end = {0: 3, 3: 5, 5: 8}[start]
        await space.add(*(probe.turn(turn_id) for turn_id in order[start:end]))
    await space.settle()
    expect(list(await space.states()) == order, "ListTurns does not keep the order of acceptance")


async def _the_memory(space: Space, word: str) -> Memory:
    found = await space.found(word)
    expect(found, "the turn is not found")
    return found[0]


@case("E1", "the time that was said stays", Feature.EVENT_TIME)
async def said_in_2019(probe: Probe) -> None:
    """A turn of 2019 that says "yesterday" makes a memory of 2019, never of today."""
    space, word = probe.space(), probe.word()
    said = datetime(2019, 7, 20, 12, tzinfo=UTC)
    await space.store(probe.turn("t1", word, text=f"yesterday I met {word} at the station", time=said))
    memory = await _the_memory(space, word)
    expect(memory.time is not None, "the memory of a turn with a time has none")
    expect(memory.time is not None and memory.time.year == 2019, "the memory of a turn of 2019 is of another year")


@case("E2", "a time to come is accepted", Feature.EVENT_TIME)
async def said_in_2031(probe: Probe) -> None:
    """A turn of 2031 is accepted and keeps its time."""
    space, word = probe.space(), probe.word()
    await space.store(probe.turn("t1", word, time=datetime(2031, 2, 3, 4, 5, tzinfo=UTC)))
    memory = await _the_memory(space, word)
    expect(memory.time is not None and memory.time.year == 2031, "the memory of a turn of 2031 is of another year")


@case("E3", "no time is invented")
async def no_time(probe: Probe) -> None:
    """A turn without a time makes a memory without one."""
    space, word = probe.space(), probe.word()
    await space.store(probe.turn("t1", word, time=None))
    memory = await _the_memory(space, word)
    expect(memory.time is None, "a time was invented for a turn without one")


@case("E4", "the zone says which day it was", Feature.TIME_ZONES)
async def two_civil_days(probe: Probe) -> None:
    """One instant in two time zones is two civil days: what is remembered, or asked of a model, shows each."""
    space = probe.space()
    days = {"Asia/Tokyo": (11, 10), "America/Los_Angeles": (10, 9)}
    words = {zone: probe.word() for zone in days}
    for number, (zone, word) in enumerate(words.items()):
        text = f"yesterday I met {word} at the station"
        await space.store(
            probe.turn(f"t{number}", word, text=text, time=INSTANT, time_zone=zone, session_id=f"s{number}")
        )
    shown = {}
    for zone, word in words.items():
        memory = await _the_memory(space, word)
        shown[zone] = _day_shown(probe, memory, word)
    for zone, own in days.items():
        other = next(days[name] for name in days if name != zone)
        expect(shown[zone] & set(own), f"nothing shows the civil day of {zone}")
        expect(not (shown[zone] & set(other)) - set(own), f"a turn in {zone} shows the civil day of another zone")


def _day_shown(probe: Probe, memory: Memory, word: str) -> set[int]:
    """The days of March 2024 that stand in a memory or in what a model was asked about it."""
    texts = [memory.text, *memory.metadata.values()]
    texts += [time.date().isoformat() for time in (memory.valid_from, memory.valid_to) if time is not None]
    if probe.target.models is not None:
        texts += probe.models.prompts(word)
    joined = " ".join(texts)
    return {
        day
        for day in (9, 10, 11)
        for form in (f"2024-03-{day:02}", f"March {day}", f"{day} March", f"{day:02}.03.2024", f"03/{day:02}/2024")
        if form in joined
    }


@case("E5", "a time without its offset is refused")
async def bad_times(probe: Probe) -> None:
    """Over HTTP naive, date-only and numeric times are 400 BAD_TIMESTAMP; over gRPC impossible instants are. Nothing is
    stored. A time with an offset is accepted."""
    space = probe.space()
    request = pb.AddTurnsRequest(system=probe.target.system, space_id=space.space_id)
    request.turns.append(wire_turn(probe.turn("t1")))
    if probe.over_http is not None:
        document = as_json(request)
        for bad in ("2024-05-01T10:00:00", "2024-05-01", 1714557600, "1714557600", "yesterday", "2024-02-30T00:00:00Z"):
            document["turns"][0]["time"] = bad
            told = await probe.send("AddTurns", orjson.dumps(document), space_id=space.space_id)
            error = told_refusal(told, "BAD_TIMESTAMP", what=f"the time {bad!r}")
            expect(names(error, "turns[0].time"), "BAD_TIMESTAMP does not name turns[0].time")
        document["turns"][0]["time"] = "2024-05-01T10:00:00+03:00"
        told = await probe.send("AddTurns", orjson.dumps(document), space_id=space.space_id)
        expect(told.error is None, "a time with an offset is refused")
    else:
        for seconds, nanos in ((253402300800, 0), (-62135596801, 0), (0, -1), (0, 10**9)):
            request.turns[0].time.seconds, request.turns[0].time.nanos = seconds, nanos
            told = await probe.send("AddTurns", request.SerializeToString())
            error = told_refusal(told, "BAD_TIMESTAMP", what=f"the time of {seconds} s and {nanos} ns")
            expect(names(error, "turns[0].time"), "BAD_TIMESTAMP does not name turns[0].time")
        request.turns[0].time.seconds, request.turns[0].time.nanos = 1714546800, 0
        told = await probe.send("AddTurns", request.SerializeToString())
        expect(told.error is None, "a right time is refused")
    await space.settle()
    expect(list(await space.states()) == ["t1"], "a turn with a bad time was stored")


@case("E6", "reference_time interprets and never filters", Feature.REFERENCE_TIME)
async def reference_time(probe: Probe) -> None:
    """The question's "now" changes which memory "last month" puts first, and removes none."""
    space, word = probe.space(), probe.word()
    months = {"january": 1, "may": 5}
    for name, month in months.items():
        said = datetime(2024, month, 15, 12, tzinfo=UTC)
        text = f"I went to see {word} in the mountains"
        await space.store(probe.turn(name, word, text=text, time=said, session_id=name))
    firsts, sets = [], []
    for month in (2, 6):
        now = datetime(2024, month, 10, tzinfo=UTC)
        query = f"what did I do last month with {word}"
        answer = await space.retrieve(query, reference_time=now, time_zone="Europe/Moscow")
        held = [memory for memory in answer.memories if word.lower() in memory.text.lower()]
        expect(held, "with a reference_time nothing is found")
        firsts.append(held[0].memory_id)
        sets.append({memory.memory_id for memory in held})
    plain = {memory.memory_id for memory in await space.found(word)}
    expect(sets[0] == sets[1] == plain, "reference_time removes memories")
    expect(firsts[0] != firsts[1], 'reference_time does not change what "last month" means')


@case("E7", "the first and the last year")
async def ends_of_time(probe: Probe) -> None:
    """Turns of the year 1 and of the year 9999 are stored, or refused with 400; never a failure of the server."""
    for year in (1, 9999):
        space, word = probe.space(), probe.word()
        time = datetime(year, 1, 1, tzinfo=UTC) if year == 1 else datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
        try:
            await space.add(probe.turn("t1", word, time=time))
        except MemdockError as error:
            expect(error.code == 3, f"a turn of the year {year} is refused with {error.reason}, not with a 400")
            continue
        flushed = await space.settle()
        expect(not flushed.failed_count, f"a turn of the year {year} is accepted and then FAILED")
        memory = await _the_memory(space, word)
        expect(memory.time in (None, time), f"a turn of the year {year} comes back with another time")
    if probe.declares(Feature.FILTER_TIME):
        early, late = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
        space = probe.space()
        await space.store(probe.turn("t1"))
        answer = await space.retrieve(question("nobody"), since=early, until=late)
        expect(answer.memories, "a filter over all of time leaves nothing")
