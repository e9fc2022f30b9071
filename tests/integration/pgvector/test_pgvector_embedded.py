"""The PostgreSQL that runs in a data folder: shared, stopped by the last, started again after any end."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from memdock.adapter.postgres import EmbeddedPostgres
from memdock.errors import MemdockError
from memdock_pgvector.database import connect

HOLD = """
import asyncio, sys
from pathlib import Path
from memdock.adapter.postgres import EmbeddedPostgres

async def main():
    server = EmbeddedPostgres(Path(sys.argv[1]))
    await server.start()
    print("held", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()

asyncio.run(main())
"""


def server_pid(folder: Path) -> int | None:
    try:
        return int((folder / "postgres" / "postmaster.pid").read_text().split()[0])
    except FileNotFoundError:
        return None


async def answers(server: EmbeddedPostgres) -> bool:
    async with await connect(server.url) as connection:
        return (await (await connection.execute("SELECT 1")).fetchone()) == (1,)


def hold(folder: Path) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert b"held\n" in iter(process.stdout.readline, b"")
    return process


async def test_processes_share_a_folder_and_the_last_one_stops_the_server(folder: Path) -> None:
    folder = folder / ("long" * 30) / "data"  # longer than the path of a socket may be
    processes = [await asyncio.to_thread(hold, folder) for _ in range(2)]
    here = EmbeddedPostgres(folder)
    await here.start()
    assert await answers(here)
    number = server_pid(folder)
    await asyncio.to_thread(processes[0].communicate, b"")
    assert await answers(here), "two still hold it"
    await here.stop()
    assert server_pid(folder) == number, "one still holds it"
    await asyncio.to_thread(processes[1].communicate, b"")
    assert server_pid(folder) is None
    assert not here._sockets.exists()
    await here.stop()


async def test_a_killed_holder_neither_blocks_nor_keeps_the_server(folder: Path) -> None:
    process = await asyncio.to_thread(hold, folder)
    process.kill()
    await asyncio.to_thread(process.communicate)
    number = server_pid(folder)
    later = EmbeddedPostgres(folder)
    await later.start()
    assert server_pid(folder) == number, "it is joined"
    assert await answers(later)
    await later.stop()
    assert server_pid(folder) is None


async def test_a_server_that_dies_is_started_again(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.start()
    try:
        number = server_pid(folder)
        assert number is not None
        os.kill(number, signal.SIGKILL)
        async with asyncio.timeout(30):
            while True:
                with suppress(psycopg.OperationalError):
                    if server_pid(folder) != number and await answers(server):
                        break
                await asyncio.sleep(0.1)
    finally:
        await server.stop()
    assert server_pid(folder) is None


async def test_an_old_pid_file_that_names_another_program_does_not_block(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.start()
    await server.stop()
    (folder / "postgres" / "postmaster.pid").write_text(f"{psutil.Process().ppid()}\n{folder}\n")
    await server.start()
    assert await answers(server)
    await server.stop()


async def test_a_folder_that_is_none_is_told(folder: Path) -> None:
    (folder / "data" / "postgres").mkdir(parents=True)
    with pytest.raises(MemdockError, match=r"pg_ctl failed for the folder .*data/postgres"):
        await EmbeddedPostgres(folder / "data").start()


async def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.start()
    await server.stop()
    (folder / "postgres" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(MemdockError, match=r"did not start in .*postgres: database files are incompatible with server"):
        await EmbeddedPostgres(folder).start()
