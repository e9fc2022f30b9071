"""R: reading."""

import unicodedata
from datetime import timedelta

from memdock.conformance.case import case, expect
from memdock.conformance.probe import SAID_AT, Probe, names, refused, sentence, word_of
from memdock.errors import MemdockError
from memdock.types import Feature, TurnState
from memdock.v1 import memory_pb2 as pb


@case("R1", "an unknown space is empty")
async def unknown_space(probe: Probe) -> None:
    """Retrieve, ListTurns, ListMemories and Flush of a space that was never used answer with nothing, not an error."""
    space = probe.space()
    answer = await space.retrieve("anything at all")
    expect((answer.memories, answer.pending, answer.failed_count) == ((), 0, 0), "an unknown space is not empty")
    expect(not await space.turns(), "ListTurns of an unknown space is not empty")
    expect(not await space.memories(), "ListMemories of an unknown space is not empty")
    flushed = await space.settle()
    expect((flushed.pending, flushed.failed_count) == (0, 0), "Flush of an unknown space counts turns")


@case("R2", "top_k is respected, best first")
async def top_k(probe: Probe) -> None:
    """At most top_k memories, the best first, 10 where it is not given; 0 and one above the limit are 400."""
    space = probe.space()
    turns = [probe.turn(f"t{number}", session_id=f"s{number}") for number in range(14)]
    await space.store(*turns)
    for most in (1, 3, None, 14):
        answer = await space.retrieve("neighbour cello floor", top_k=most)
        expect(len(answer.memories) <= (most or 10), f"more than top_k={most or '(unset: 10)'} memories are given")
        ids = [memory.memory_id for memory in answer.memories]
        expect(len(ids) == len(set(ids)), "one answer holds the same memory twice")
    for turn in turns[:4]:
        answer = await space.retrieve(word_of(turn), top_k=1)
        held = [memory for memory in answer.memories if word_of(turn).lower() in memory.text.lower()]
        expect(held, "the memory that alone holds the word of the query is not the first")
    for bad in (0, probe.description.limits.max_top_k + 1):
        error = await refused(space.client.retrieve(space.space_id, "x", top_k=bad), what=f"top_k={bad}")
        expect(names(error, "top_k"), "the refusal does not name top_k")


@case("R3.sessions", "the filter by session excludes the rest", Feature.FILTER_SESSIONS)
async def filter_sessions(probe: Probe) -> None:
    """With filter.session_ids only memories of those sessions are given, and all that fit there can be found."""
    space = probe.space()
    turns = {session: probe.turn(f"t-{session}", session_id=session) for session in ("s1", "s2", "s3")}
    await space.store(*turns.values())
    for chosen in (["s1"], ["s2", "s3"], ["nowhere"]):
        answer = await space.retrieve("neighbour cello floor", top_k=10, session_ids=chosen)
        shown = {name for name, turn in turns.items() if any(word_of(turn) in one.text for one in answer.memories)}
        expect(shown <= set(chosen), "filter.session_ids lets a memory of another session through")
        for name in set(chosen) & set(turns):
            expect(await space.found(word_of(turns[name]), session_ids=chosen), "the filter hides what fits it")


@case("R3.time", "the filter by time excludes the rest", Feature.FILTER_TIME)
async def filter_time(probe: Probe) -> None:
    """`since` is inclusive, `until` exclusive; a memory without a time fits no bound."""
    space = probe.space()
    times = {"early": SAID_AT, "middle": SAID_AT + timedelta(days=1), "late": SAID_AT + timedelta(days=2), "none": None}
    turns = {name: probe.turn(name, session_id=name, time=time) for name, time in times.items()}
    await space.store(*turns.values())
    middle = times["middle"]
    bounds = {
        "since": ({"since": middle}, {"middle", "late"}),
        "until": ({"until": middle}, {"early"}),
        "both": ({"since": middle, "until": times["late"]}, {"middle"}),
    }
    for name, (options, expected) in bounds.items():
        shown = {key for key, turn in turns.items() if await space.found(word_of(turn), **options)}
        expect(shown <= expected, f"a filter by time ({name}) lets through what is outside of it")
        expect(shown == expected, f"a filter by time ({name}) hides what is inside of it")
    await refused(
        space.client.retrieve(space.space_id, "x", since=middle, until=times["early"]), what="until before since"
    )


@case("R4", "scores fall with the rank", Feature.SCORES)
async def scores(probe: Probe) -> None:
    """Scores are there, finite, and never rise from one memory to the next."""
    space = probe.space()
    turns = [probe.turn(f"t{number}", session_id=f"s{number}") for number in range(8)]
    await space.store(*turns)
    for turn in turns[::2]:
        answer = await space.retrieve(f"{word_of(turn)} and the cello", top_k=8)
        given = [memory.score for memory in answer.memories]
        expect(given and None not in given, "scores are declared and a memory has none")
        numbers = [score for score in given if score is not None]
        expect(numbers == sorted(numbers, reverse=True), "a score rises from one rank to the next")


@case("R5", "sources exist", Feature.SOURCES)
async def sources(probe: Probe) -> None:
    """Each source of each memory is a turn that ListTurns tells, in its session."""
    space = probe.space()
    await space.store(*(probe.turn(f"t{number}", session_id=f"s{number % 2}") for number in range(6)))
    turns = {(record.session_id, record.turn_id) for record in await space.turns()}
    answer = await space.retrieve("neighbour cello floor", top_k=6)
    expect(answer.memories, "nothing is found")
    for memory in (*answer.memories, *await space.memories()):
        expect(memory.sources, "sources are declared and a memory has none")
        expect({(one.session_id, one.turn_id) for one in memory.sources} <= turns, "a source is no turn of the space")


@case("R6", "lists are complete over pages")
async def pages_of_turns(probe: Probe) -> None:
    """ListTurns over pages of changing size: each turn once, in order, no gap; a bad token is 400 BAD_PAGE_TOKEN."""
    space = probe.space()
    turns = [probe.turn(f"t{number}") for number in range(23)]
    await space.store(*turns)
    listed: list[str] = []
    token = ""
    for size in (1, 7, 3, 20, 5):
        request = _page(pb.ListTurnsRequest, space.space_id, probe, size, token)
        page = await probe.call("ListTurns", request)
        expect(len(page.turns) <= size, "a page is larger than was asked for")
        listed += [record.turn_id for record in page.turns]
        token = page.next_page_token
        if not token:
            break
    expect(listed == [turn.turn_id for turn in turns], "pages of ListTurns repeat, miss or reorder turns")
    bad = _page(pb.ListTurnsRequest, space.space_id, probe, 5, "no-token-of-yours")
    await refused(probe.call("ListTurns", bad), "BAD_PAGE_TOKEN", what="a page token of somebody else's")


@case("R6.memories", "the list of memories is complete", Feature.LIST_MEMORIES)
async def pages_of_memories(probe: Probe) -> None:
    """ListMemories over pages of changing size: each memory once, all turns covered; a bad token is 400."""
    space = probe.space()
    turns = [probe.turn(f"t{number}") for number in range(11)]
    await space.store(*turns)
    ids: list[str] = []
    texts: list[str] = []
    token = ""
    for size in (1, 4, 2, *(3 for _ in range(40))):
        page = await probe.call("ListMemories", _page(pb.ListMemoriesRequest, space.space_id, probe, size, token))
        expect(len(page.memories) <= size, "a page is larger than was asked for")
        ids += [memory.memory_id for memory in page.memories]
        texts += [memory.text for memory in page.memories]
        token = page.next_page_token
        if not token:
            break
    expect(not token, "ListMemories never ends")
    expect(len(ids) == len(set(ids)), "pages of ListMemories repeat memories")
    whole = [memory.memory_id for memory in await space.memories()]
    expect(ids == whole, "ListMemories in small pages is not what it is in one")
    joined = " ".join(texts).lower()
    expect(all(word_of(turn).lower() in joined for turn in turns), "ListMemories leaves out what a turn said")
    bad = _page(pb.ListMemoriesRequest, space.space_id, probe, 5, "no-token-of-yours")
    await refused(probe.call("ListMemories", bad), "BAD_PAGE_TOKEN", what="a page token of somebody else's")


def _page(kind: type, space_id: str, probe: Probe, size: int, token: str) -> object:
    return kind(system=probe.target.system, space_id=space_id, page_size=size, page_token=token)


@case("R7", "any text goes round")
async def any_text(probe: Probe) -> None:
    """Cyrillic, emoji, right-to-left, NFC and NFD texts and one of the largest size are found again, letter by letter
    where memories repeat texts. NUL is 400 and names the field."""
    space, limits = probe.space(), probe.description.limits
    sample = unicodedata.normalize("NFC", "caf\u00e9 \u00e5ngstr\u00f6m")
    texts = {
        "plain": "a plain sentence of letters",
        "cyrillic": "моя сестра живёт в Казани и учит татарский",
        "emoji": "we danced 💃🏽 all night 👩‍👩‍👧‍👦 and then 🏳️‍🌈",
        "rtl": "אחותי גרה בחיפה ואוהבת ים \u202bمرحبا\u202c",
        "nfc": sample,
        "nfd": unicodedata.normalize("NFD", sample),
        "breaks": "one line\nanother\r\nand\ttabs  two  spaces",
    }
    words = {name: probe.word() for name in texts}
    await space.store(
        *(
            probe.turn(name, words[name], text=f"{words[name]} {text}", session_id=f"s-{name}")
            for name, text in texts.items()
        )
    )
    plain = await space.found(words["plain"])
    repeats = any(texts["plain"] in memory.text for memory in plain)
    for name, text in texts.items():
        found = await space.found(words[name])
        expect(found, f"a text of the kind {name} is not found")
        if repeats and name != "breaks":  # whoever reads line by line may keep lines apart
            expect(any(text in memory.text for memory in found), f"a text of the kind {name} comes back changed")
    await _largest(probe, limits.max_turn_bytes)
    bad = probe.turn("nul", text="before\0after")
    error = await refused(space.client.add_turns(space.space_id, [bad]), what="NUL in a text")
    expect(names(error, "turns[0].text"), "the refusal of NUL does not name turns[0].text")


async def _largest(probe: Probe, size: int) -> None:
    space, word = probe.space(), probe.word()
    head = sentence(word) + " "
    await space.add(probe.turn("large", word, text=head + ("plain words " * size)[: size - len(head)]))
    flushed = await space.settle()
    expect(not flushed.failed_count, f"a turn of max_turn_bytes ({size}) is accepted and then FAILED")
    expect((await space.states())["large"] is TurnState.SEARCHABLE, "a turn of max_turn_bytes is not searchable")


@case("R8", "odd queries are answered or refused")
async def odd_queries(probe: Probe) -> None:
    """A query of blanks, of max_query_bytes, of one emoji, of punctuation: an answer or a 400, never a failure."""
    space = probe.space()
    await space.store(probe.turn("t1"))
    size = probe.description.limits.max_query_bytes
    queries = {
        "blanks": "  \t ",
        "of max_query_bytes": ("neighbour " * size)[: size - 1] + "x",
        "of one emoji": "🎻",
        "of punctuation": "?!... -- ''\"; %_*() \\",
        "of search operators": 'neighbour AND NOT (cello OR "floor',
    }
    for name, query in queries.items():
        try:
            await space.retrieve(query)
        except MemdockError as error:
            expect(error.code == 3, f"a query {name} ends in {error.reason}")
