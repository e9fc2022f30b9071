"""The whole system behind its server: a client on the wire, real PostgreSQL, a scripted model server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from memdock.client import AsyncClient, connect_async
from memdock.errors import MemdockError
from memdock.server import ServeOptions, Server
from memdock.types import Component, Memory, Turn, TurnState
from memdock_pgvector.database import connect
from memdock_pgvector.opening import open_system
from memdock_pgvector.ranking import Fusion
from memdock_pgvector.settings import Ranking, Settings
from support.model_server import ModelServer

SAID = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)

Serve = Callable[..., AbstractAsyncContextManager[AsyncClient]]


def turn(turn_id: str, role: str, text: str, session_id: str = "s1", **more: object) -> Turn:
    return Turn(turn_id=turn_id, session_id=session_id, role=role, text=text, **more)  # type: ignore[arg-type]


TALK = [
    turn("1", "user", "my cat likes the garden", name="Ann", time=SAID),
    turn("2", "assistant", "a lovely cat", name="Bob", time=SAID),
    turn("3", "user", "we climbed a mountain", session_id="s2"),
    turn("4", "assistant", "which mountain was it", session_id="s2"),
    turn("5", "user", "the river is cold", session_id="s2"),
]


@pytest.fixture
def serve(postgres_url: str, schema: str, models: ModelServer) -> Serve:
    """`serve(fusion=..., model=..., cache=...)`: a served system in the test's schema, and a client of it."""

    @asynccontextmanager
    async def _serve(
        fusion: Fusion = Fusion.HYBRID, model: str = "words", cache: Path | None = None
    ) -> AsyncIterator[AsyncClient]:
        settings = Settings(
            system=schema,
            ranking=Ranking(fusion=fusion),
            database=postgres_url,
            data=Path("unused"),
            embedder=f"{models.url}#{model}",
            embedder_key="",
            embedding_cache=cache,
        )
        async with open_system(settings) as opened:
            models.requests.clear()
            async with (
                Server(opened.system, opened.ledger, ServeOptions()) as server,
                connect_async(f"grpc://127.0.0.1:{server.ports['grpc']}") as client,
            ):
                yield client

    return _serve


async def memories(client: AsyncClient, space: str = "a") -> list[Memory]:
    return [memory async for memory in client.list_memories(space)]


async def states(client: AsyncClient, space: str = "a") -> dict[str, TurnState]:
    return {record.turn_id: record.state async for record in client.list_turns(space)}


async def test_pairs_are_memories_and_the_last_word_waits_for_the_barrier(serve: Serve) -> None:
    async with serve() as client:
        await client.add_turns("a", TALK)
        async with asyncio.timeout(10):
            while (await states(client))["4"] is TurnState.PENDING:  # noqa: ASYNC110 - no call waits for less than all
                await asyncio.sleep(0.01)
        assert (await states(client))["5"] is TurnState.PENDING
        assert (await client.retrieve("a", "river")).pending == 1
        flushed = await client.flush("a")
        assert (flushed.done, flushed.pending, flushed.failed_count) == (True, 0, 0)
        assert [memory.text for memory in await memories(client)] == [
            "Ann: my cat likes the garden\nBob: a lovely cat",
            "user: we climbed a mountain\nassistant: which mountain was it",
            "user: the river is cold",
        ]
        best, *_ = (await client.retrieve("a", "cats in a garden", top_k=2)).memories
        assert [(source.session_id, source.turn_id) for source in best.sources] == [("s1", "1"), ("s1", "2")]
        assert (best.time, best.kind) == (SAID, "turn")


@pytest.mark.parametrize("fusion", Fusion)
async def test_every_fusion_finds_filters_and_scores(serve: Serve, fusion: Fusion) -> None:
    async with serve(fusion) as client:
        await client.add_turns("a", TALK)
        await client.flush("a")
        found = (await client.retrieve("a", "mountain", top_k=3)).memories
        scores = [memory.score or 0.0 for memory in found]
        assert found[0].text.startswith("user: we climbed")
        assert scores == sorted(scores, reverse=True)
        in_session = (await client.retrieve("a", "mountain", session_ids=("s1",))).memories
        assert [memory.sources[0].turn_id for memory in in_session] == ["1"]
        in_time = (await client.retrieve("a", "mountain", since=SAID)).memories
        assert [memory.sources[0].turn_id for memory in in_time] == ["1"]
        assert (await client.retrieve("a", "mountain", until=SAID)).memories == ()
        with pytest.raises(MemdockError, match="REFERENCE_TIME"):
            await client.retrieve("a", "mountain", reference_time=SAID)


async def test_usage_and_stages_are_told(serve: Serve, models: ModelServer) -> None:
    async with serve() as client:
        await client.add_turns("a", TALK)
        await client.flush("a")
        found = await client.retrieve("a", "mountain")
        assert [(one.calls, one.input_tokens) for one in found.usage] == [(1, len("mountain"))]
        assert {"embed", "store"} <= {one.stage for one in found.timing}
        asked = [text for kind, body in models.requests for text in body["input"]]
        (total,) = (await client.flush("a")).space_usage
        assert (total.calls, total.input_tokens) == (len(models.requests), sum(map(len, asked)))


async def test_many_pairs_are_embedded_in_one_call(serve: Serve, models: ModelServer) -> None:
    async with serve() as client:
        pairs = [turn(f"{n}{role[0]}", role, f"text {n}") for n in range(64) for role in ("user", "assistant")]
        await client.add_turns("a", pairs)
        await client.flush("a")
        assert len(await memories(client)) == 64
        assert len(models.requests) <= 2


async def test_one_text_that_the_model_refuses_fails_alone_and_can_be_sent_again(
    serve: Serve, models: ModelServer
) -> None:
    healthy = models.embed

    def refuse(text: str) -> list[float]:
        if "mountain" in text:
            raise web.HTTPBadRequest
        return healthy(text)

    models.embed = refuse
    async with serve() as client:
        models.embed = refuse
        await client.add_turns("a", TALK)
        flushed = await client.flush("a")
        assert (flushed.done, flushed.failed_count) == (True, 2)
        assert {(one.turn_id, one.error.reason) for one in flushed.failed if one.error} == {
            ("3", "PROVIDER_PROTOCOL_ERROR"),
            ("4", "PROVIDER_PROTOCOL_ERROR"),
        }
        assert len(await memories(client)) == 2
        models.embed = healthy
        await client.add_turns("a", TALK)
        assert (await client.flush("a")).failed_count == 0
        assert len(await memories(client)) == 3


async def test_forgetting_a_turn_rebuilds_its_memory_from_the_other_half(
    serve: Serve, models: ModelServer, schema: str, postgres_url: str
) -> None:
    async with serve() as client:
        await client.add_turns("a", TALK)
        await client.flush("a")
        before = {memory.text: memory.memory_id for memory in await memories(client)}
        preview = await client.forget("a", turn_ids=("1",), dry_run=True)
        assert len(await memories(client)) == 3
        done = await client.forget("a", turn_ids=("1", "nobody"))
        assert (done.erased_turn_ids, done.erased_memory_ids) == (preview.erased_turn_ids, preview.erased_memory_ids)
        assert (done.erased_turn_ids, done.not_found) == (("1",), ("nobody",))
        assert {one.component for one in done.residual} == {Component.VECTOR, Component.KEYWORD, Component.RAW_TURNS}
        assert all((one.items, one.verified) == (0, True) for one in done.residual)
        rebuilt = (await client.retrieve("a", "lovely")).memories[0]
        assert rebuilt.text == "Bob: a lovely cat"
        assert rebuilt.memory_id == before["Ann: my cat likes the garden\nBob: a lovely cat"]
        assert models.requests[-2][1]["input"] == ["Bob: a lovely cat"], "the vector is of the other half alone"
        assert "garden" not in await dump(postgres_url, schema)
        again = await client.add_turns("a", TALK[:1])
        assert again.results[0].state is TurnState.FORGOTTEN
        assert (await client.forget("a", turn_ids=("2",))).erased_memory_ids == (rebuilt.memory_id,)


async def dump(url: str, schema: str) -> str:
    """Every row of every table of the schema, as text."""
    async with await connect(url) as connection:
        cursor = await connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", [schema]
        )
        tables = [name for (name,) in await cursor.fetchall()]
        rows = []
        for table in tables:
            cursor = await connection.execute(f'SELECT t::text FROM "{schema}"."{table}" t')
            rows += [row for (row,) in await cursor.fetchall()]
    return "\n".join(rows)


async def test_forgetting_memories_and_sessions(serve: Serve, schema: str, postgres_url: str) -> None:
    async with serve() as client:
        await client.add_turns("a", TALK)
        await client.add_turns("b", TALK)
        await client.flush("a")
        await client.flush("b")
        first, *_ = await memories(client)
        foreign, *_ = await memories(client, "b")
        ids = (first.memory_id, foreign.memory_id, first.memory_id.upper(), "nonsense")
        done = await client.forget("a", memory_ids=ids)
        assert (done.erased_memory_ids, done.erased_turn_ids) == ((first.memory_id,), ("1", "2"))
        assert done.not_found == ids[1:]
        done = await client.forget("a", session_ids=("s2", "s9"))
        assert (set(done.erased_turn_ids), done.not_found) == ({"3", "4", "5"}, ("s9",))
        assert len(done.erased_memory_ids) == 2
        assert await memories(client) == []
        assert len(await memories(client, "b")) == 3
        await client.reset("b")
        text = await dump(postgres_url, schema)
        assert not [word for word in ("garden", "lovely", "mountain", "river") if word in text]


async def test_reset_leaves_nothing_and_old_turns_are_welcome_again(serve: Serve) -> None:
    async with serve() as client:
        await client.add_turns("a", TALK)
        await client.flush("a")
        done = await client.reset("a")
        assert (done.erased_memories, done.erased_turns) == (3, 5)
        assert all((one.items, one.verified) == (0, True) for one in done.residual)
        assert (await memories(client), await states(client)) == ([], {})
        assert (await client.retrieve("a", "cat")).memories == ()
        await client.add_turns("a", TALK)
        await client.flush("a")
        assert len(await memories(client)) == 3
        await client.reset("never-used")


async def test_a_dense_system_keeps_no_words_and_cannot_be_made_to_rank_by_them(
    serve: Serve, schema: str, postgres_url: str
) -> None:
    async with serve(Fusion.DENSE) as client:
        await client.add_turns("a", TALK)
        await client.flush("a")
        done = await client.forget("a", turn_ids=("1",))
        assert {one.component for one in done.residual} == {Component.VECTOR, Component.RAW_TURNS}
    with pytest.raises(MemdockError, match="was made for dense search and keeps no words"):
        async with serve(Fusion.HYBRID):
            pass


async def test_an_embedding_cache_is_told_as_residue(serve: Serve, tmp_path: Path) -> None:
    async with serve(cache=tmp_path / "cache.sqlite") as client:
        await client.add_turns("a", TALK)
        await client.flush("a")
        residual = {one.component: one for one in (await client.reset("a")).residual}
        assert (residual[Component.CACHE].items, residual[Component.CACHE].verified) == (3, False)
        assert "delete its file" in residual[Component.CACHE].note


async def test_another_embedder_is_refused_and_loses_nothing(serve: Serve) -> None:
    async with serve() as client:
        await client.add_turns("a", TALK[:2])
        await client.flush("a")
    async with serve(model="other") as client:
        with pytest.raises(MemdockError, match=r"EMBEDDER_MISMATCH.*reindex"):
            await client.retrieve("a", "cat")
        await client.add_turns("a", TALK[2:])
        flushed = await client.flush("a")
        assert {one.error.reason for one in flushed.failed if one.error} == {"EMBEDDER_MISMATCH"}
        assert len(await memories(client)) == 1
    async with serve() as client:
        await client.add_turns("a", TALK[2:])
        assert (await client.flush("a")).failed_count == 0
        assert len(await memories(client)) == 3


async def test_a_restart_forgets_nothing(serve: Serve) -> None:
    async with serve() as client:
        digest = (await client.describe()).config_digest
        await client.add_turns("a", TALK)
    async with serve() as client:
        assert (await client.describe()).config_digest == digest
        await client.flush("a")
        assert len(await memories(client)) == 3
        assert {one.duplicate for one in (await client.add_turns("a", TALK)).results} == {True}
    async with serve(Fusion.KEYWORD) as client:
        assert (await client.describe()).config_digest != digest
