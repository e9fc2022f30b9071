"""What only mem0 does."""

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from memdock.adapter.postgres import EmbeddedPostgres
from support.adapters import ADAPTERS, RunningAdapter, fill, running, space, turn
from support.model_server import ModelServer

(MEM0,) = [each for each in ADAPTERS if each.name == "mem0"]


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"memory": None},
        {"memory": "persimmon"},
        {"memory": [{"id": "0"}]},
        {"memory": [{"id": "0", "text": None}]},
        {"memory": [{"id": "0", "text": "persimmon"}, {"id": "1", "text": ""}]},
        {"memory": [None]},
    ],
    ids=str,
)
def test_a_reply_of_another_form_is_a_failure_and_leaves_nothing(served: RunningAdapter, reply: object) -> None:
    if served.adapter is not MEM0:
        pytest.skip("only mem0")
    name = space()
    served.models.chat = lambda body: json.dumps(reply)
    try:
        with served.client() as client:
            client.add_turns(name, [turn("t1", "persimmon is my cat")])
            (failed,) = client.flush(name, timeout_s=60).failed
            assert failed.error is not None
            assert (failed.error.reason, failed.error.retryable) == ("PROVIDER_PROTOCOL_ERROR", True)
            assert list(client.list_memories(name)) == []
    finally:
        served.models.chat = MEM0.chat


def test_an_id_that_is_none_of_its_own_is_not_found(served: RunningAdapter) -> None:
    if served.adapter is not MEM0:
        pytest.skip("only mem0")
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        assert client.forget(name, memory_ids=["of nobody"]).not_found == ("of nobody",)


async def test_a_database_that_is_away_is_told_and_never_taken_for_nothing_found(
    tmp_path: Path, models: ModelServer
) -> None:
    database = EmbeddedPostgres(tmp_path / "database")
    await database.start()
    try:
        with running(MEM0, tmp_path, models, flags={"--database": database.url}) as started:
            address = f"http://127.0.0.1:{started.process.ports()['http']}/readyz"

            async def ready() -> int:
                async with aiohttp.ClientSession() as session, session.get(address) as answer:
                    return answer.status

            assert await ready() == 200
            await database.stop()
            assert await ready() == 503
            await database.start()
            async with asyncio.timeout(60):
                while await ready() != 200:  # noqa: ASYNC110 - a test looks from outside
                    await asyncio.sleep(0.1)
    finally:
        await database.stop()
