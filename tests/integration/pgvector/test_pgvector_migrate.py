"""Migrations: twice, by many at once, and refused where they would do harm."""

import asyncio
import sys

import pytest

from memdock.errors import MemdockError
from memdock_pgvector.database import connect
from memdock_pgvector.migrate import migrate, migrations


async def test_the_second_time_there_is_nothing_to_do(postgres_url: str, schema: str) -> None:
    assert await migrate(postgres_url, schema) == len(migrations())
    assert await migrate(postgres_url, schema) == 0


async def test_processes_and_tasks_at_once_migrate_once(postgres_url: str, schema: str) -> None:
    code = (
        "import asyncio, sys; from memdock_pgvector.migrate import migrate;"
        "print(asyncio.run(migrate(sys.argv[1], sys.argv[2])))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, postgres_url, schema, stdout=asyncio.subprocess.PIPE
    )
    here = [migrate(postgres_url, schema) for _ in range(4)]
    steps = await asyncio.gather(*here)
    output, _ = await process.communicate()
    assert sorted([*steps, int(output)]) == [0, 0, 0, 0, len(migrations())]


async def test_a_schema_of_a_newer_program_is_left_alone(postgres_url: str, schema: str) -> None:
    await migrate(postgres_url, schema)
    async with await connect(postgres_url) as connection:
        await connection.execute(f'INSERT INTO "{schema}".migration (version) VALUES (999)')
    with pytest.raises(MemdockError, match=f"{schema} has layout 999, this program knows {len(migrations())}"):
        await migrate(postgres_url, schema)


async def test_a_server_that_is_not_there(schema: str) -> None:
    with pytest.raises(MemdockError, match="STORE_UNREACHABLE"):
        await migrate("postgresql://nobody@127.0.0.1:1/none", schema)
