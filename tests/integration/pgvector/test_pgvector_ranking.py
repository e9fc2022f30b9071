"""What the store's statements compute, beside the same formulas in numpy."""

import math
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from memdock.errors import MemdockError
from memdock.types import Turn
from memdock_pgvector import erase, store
from memdock_pgvector.chunks import Chunk, new_chunk_id
from memdock_pgvector.database import Database
from memdock_pgvector.ranking import BM25_B, BM25_K1, Fusion, Search, search_exactly
from memdock_pgvector.rows import ReadyChunk
from memdock_pgvector.terms import count_terms

DAY = datetime(2024, 1, 1, tzinfo=UTC)
WORDS = ("garden", "cat", "dog", "picnic", "river", "собака", "кошка", "река", "гора", "пикник", "и", "в", "the", "a")
CHANCE = random.Random(3)
NUMBERS = np.random.default_rng(3)

Scores = NDArray[np.floating]


def vector() -> NDArray[np.float32]:
    numbers = NUMBERS.standard_normal(16).astype(np.float32)
    return numbers / np.linalg.norm(numbers)


def ready(place: int) -> ReadyChunk:
    text = " ".join(CHANCE.choices(WORDS, k=CHANCE.randint(1, 30)))
    time = None if place % 5 == 0 else DAY + timedelta(days=place)
    turn = Turn(turn_id=f"t{place}", session_id=f"s{place % 3}", role="user", text=text, time=time)
    chunk = Chunk(id=new_chunk_id(), turns=(turn,))
    return ReadyChunk(chunk=chunk, vector=vector(), terms=chunk.terms)


async def add(database: Database, space: str, chunks: list[ReadyChunk], embedder: str = "e") -> None:
    async with database.transaction() as connection:
        await store.add_chunks(connection, space, chunks, embedder=embedder, dimension=len(chunks[0].vector))


async def find(database: Database, fusion: Fusion, search: Search, space: str = "a") -> list[tuple[str, float]]:
    async with database.connection() as connection:
        found = await search_exactly(connection, space, fusion, search)
    return [(chunk.turns[0].turn_id, score) for chunk, score in found]


def question(text: str = "пикник на реке with the dogs", **more: object) -> Search:
    return Search(embedder="e", vector=vector(), terms=list(count_terms(text)), top_k=7, **more)  # type: ignore[arg-type]


def bm25(chunks: list[ReadyChunk], terms: list[str]) -> Scores:
    lengths = np.array([sum(chunk.terms.values()) for chunk in chunks])
    scores = np.zeros(len(chunks))
    for term in terms:
        times = np.array([chunk.terms.get(term, 0) for chunk in chunks])
        held = (times > 0).sum()
        idf = math.log(1 + (len(chunks) - held + 0.5) / (held + 0.5))
        scores += idf * times * (BM25_K1 + 1) / (times + BM25_K1 * (1 - BM25_B + BM25_B * lengths / lengths.mean()))
    return scores


def z(scores: Scores) -> Scores:
    standard: Scores = (scores - scores.mean()) / scores.std()
    return standard


def best(chunks: list[ReadyChunk], scores: Scores, top_k: int = 7) -> list[tuple[str, object]]:
    order = np.argsort(-scores, kind="stable")[:top_k]
    return [(chunks[place].chunk.turns[0].turn_id, pytest.approx(scores[place], abs=1e-5)) for place in order]


async def test_each_fusion_is_its_formula_over_the_whole_space(database: Database) -> None:
    chunks = [ready(place) for place in range(60)]
    await add(database, "a", chunks[:25])
    await add(database, "a", chunks[25:])
    await add(database, "other", [ready(place) for place in range(40)])
    for _ in range(5):
        search = question(" ".join(CHANCE.choices(WORDS, k=5)))
        dense = np.array([chunk.vector for chunk in chunks]) @ search.vector
        words = bm25(chunks, list(search.terms))
        assert await find(database, Fusion.DENSE, search) == best(chunks, dense)
        assert await find(database, Fusion.KEYWORD, search) == best(chunks, words)
        assert await find(database, Fusion.HYBRID, search) == best(chunks, z(dense) + z(words))


async def test_a_filter_narrows_what_is_ranked_and_normalised_but_not_the_statistics(database: Database) -> None:
    chunks = [ready(place) for place in range(60)]
    await add(database, "a", chunks)
    since, until = DAY + timedelta(days=11), DAY + timedelta(days=41)
    search = question(session_ids=("s1", "s2"), since=since, until=until)
    passing = [
        place
        for place, chunk in enumerate(chunks)
        if place % 3 and chunk.chunk.said_at is not None and since <= chunk.chunk.said_at < until
    ]
    words = bm25(chunks, list(search.terms))[passing]
    dense = np.array([chunks[place].vector for place in passing]) @ search.vector
    assert len(passing) > 7
    assert await find(database, Fusion.HYBRID, search) == best([chunks[p] for p in passing], z(dense) + z(words))
    assert await find(database, Fusion.HYBRID, question(session_ids=("s9",))) == []


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
async def test_what_does_not_tell_memories_apart_is_no_part_of_the_hybrid_score(database: Database, count: int) -> None:
    one = ready(1)
    equal = [replace(one, chunk=replace(one.chunk, id=new_chunk_id())) for _ in range(count)]
    await add(database, "equal", equal)
    words = list(one.terms)
    for text in (" ".join(words), "🙂"):
        assert {score for _, score in await find(database, Fusion.HYBRID, question(text), space="equal")} == {1.0}
    await add(database, "vectors", [replace(each, vector=vector()) for each in equal])
    search = question(" ".join(words))
    assert [score for _, score in await find(database, Fusion.HYBRID, search, space="vectors")] == pytest.approx(
        sorted(await dense_z(database, search), reverse=True)[:7], abs=1e-5
    )


async def dense_z(database: Database, search: Search) -> list[float]:
    scores = np.array([score for _, score in await find(database, Fusion.DENSE, replace(search, top_k=99), "vectors")])
    return [1.0] if len(scores) == 1 else [float(score) for score in z(scores)]


async def test_equal_chunks_come_in_acceptance_order(database: Database) -> None:
    one = ready(0)
    chunks = [
        ReadyChunk(
            chunk=Chunk(id=new_chunk_id(), turns=(Turn(turn_id=f"t{i}", session_id="s", role="user", text="a cat"),)),
            vector=one.vector,
            terms={"a": 1, "cat": 1},
        )
        for i in range(5)
    ]
    await add(database, "a", chunks)
    for fusion in Fusion:
        found = await find(database, fusion, question("cat"))
        assert [turn_id for turn_id, _ in found] == ["t0", "t1", "t2", "t3", "t4"]


async def test_an_unknown_space_and_a_question_without_words(database: Database) -> None:
    assert await find(database, Fusion.HYBRID, question(), space="nowhere") == []
    await add(database, "a", [ready(1)])
    assert await find(database, Fusion.HYBRID, question("🙂")) == [("t1", 1.0)]


async def test_statistics_equal_a_recount_after_any_adding_and_erasing(database: Database) -> None:
    held: list[ReadyChunk] = []
    for place in range(30):
        chunks = [ready(place * 10 + i) for i in range(CHANCE.randint(1, 6))]
        await add(database, "a", chunks)
        held += chunks
        gone = CHANCE.sample(held, CHANCE.randint(0, min(4, len(held))))
        async with database.transaction() as connection:
            terms = await erase.delete_chunks(connection, "a", [chunk.chunk.id for chunk in gone])
            residual = await erase.residue_of_chunks(
                connection, "a", chunk_ids=[chunk.chunk.id for chunk in gone], turn_ids=[], terms=terms
            )
        assert [one.items for one in residual] == [0, 0, 0]
        held = [chunk for chunk in held if chunk not in gone]
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT term, chunk_count FROM term")
        assert dict(await cursor.fetchall()) == Counter(term for chunk in held for term in chunk.terms)
        cursor = await connection.execute("SELECT chunk_count, term_total FROM space")
        assert await cursor.fetchall() == [(len(held), sum(sum(chunk.terms.values()) for chunk in held))]


async def test_residue_is_found_where_there_is_some(database: Database) -> None:
    chunk = ready(1)
    await add(database, "a", [chunk])
    async with database.connection() as connection:
        await connection.execute("UPDATE term SET chunk_count = chunk_count + 1")
        residual = await erase.residue_of_chunks(
            connection, "a", chunk_ids=[chunk.chunk.id], turn_ids=["t1"], terms=list(chunk.terms)
        )
    assert [(one.component.value, one.items, one.verified) for one in residual] == [
        ("VECTOR", 1, True),
        ("KEYWORD", len(chunk.terms), True),
        ("RAW_TURNS", 1, True),
    ]


async def test_another_embedder_is_refused_by_name(database: Database) -> None:
    await add(database, "a", [ready(1)])
    with pytest.raises(MemdockError, match=r"made by e \(16 dimensions\), the system runs f \(16\).*reindex") as caught:
        await add(database, "a", [ready(2)], embedder="f")
    assert caught.value.reason == "EMBEDDER_MISMATCH"
    wrong = Search(embedder="e", vector=np.ones(3, dtype=np.float32), terms=[], top_k=3)
    with pytest.raises(MemdockError, match="EMBEDDER_MISMATCH"):
        await find(database, Fusion.DENSE, wrong)
    assert [turn_id for turn_id, _ in await find(database, Fusion.DENSE, question())] == ["t1"]


async def test_the_space_of_one_name_is_deleted_whole_and_alone(database: Database) -> None:
    await add(database, "a", [ready(1), ready(2)])
    await add(database, "b", [ready(1)])
    async with database.transaction() as connection:
        row = await store.find_space(connection, "a")
        assert row is not None
        before = await erase.residue_of_space(connection, row.id)
        await erase.delete_space(connection, "a")
        after = await erase.residue_of_space(connection, row.id)
    assert [one.items > 0 for one in before] == [True, True, True]
    assert [one.items for one in after] == [0, 0, 0]
    assert [turn_id for turn_id, _ in await find(database, Fusion.HYBRID, question(), space="b")] == ["t1"]
