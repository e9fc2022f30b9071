"""Chunks into their table by a binary COPY.

The rows are put together here, in PostgreSQL's documented format ("COPY", section "Binary Format"): handing them to
the driver value by value takes twice as long.
"""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import LiteralString

import numpy as np
import orjson
from psycopg import AsyncConnection

from memdock_pgvector.rows import ReadyChunk, pack_turns
from memdock_pgvector.vectors import pack_vectors

_COLUMNS: LiteralString = "space_id, id, session_id, said_at, turns, terms, term_total, embedding"
_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TAIL = b"\xff\xff"
_NULL = struct.pack(">i", -1)
_JSONB_VERSION = b"\x01"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# The number of columns; then the two of which the length is known.
_START = struct.Struct(">hiqi16s")
_BIGINT = struct.Struct(">iq")
_INTEGER = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
# A row is a few kilobytes: so many make a message of a good size.
_ROWS_A_MESSAGE = 64


async def copy_chunks(connection: AsyncConnection, space_id: int, ready: Sequence[ReadyChunk]) -> None:
    """Appends the rows of chunks to a space."""
    async with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY chunk ({_COLUMNS}) FROM STDIN (FORMAT binary)") as copy,
    ):
        await copy.write(_HEAD)
        for start in range(0, len(ready), _ROWS_A_MESSAGE):
            await copy.write(_rows(space_id, ready[start : start + _ROWS_A_MESSAGE]))
        await copy.write(_TAIL)


def _rows(space_id: int, ready: Sequence[ReadyChunk]) -> bytes:
    vectors = pack_vectors(np.stack([one.vector for one in ready]))
    return b"".join([_row(space_id, one, vector) for one, vector in zip(ready, vectors, strict=True)])


def _row(space_id: int, ready: ReadyChunk, vector: bytes) -> bytes:
    chunk = ready.chunk
    return b"".join(
        (
            _START.pack(8, 8, space_id, 16, chunk.id.bytes),
            _field(chunk.session_id.encode()),
            _instant(chunk.said_at),
            _field(pack_turns(chunk.turns)),
            _field(_JSONB_VERSION + orjson.dumps(ready.terms)),
            _INTEGER.pack(4, ready.term_total),
            _field(vector),
        )
    )


def _field(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


def _instant(time: datetime | None) -> bytes:
    return _NULL if time is None else _BIGINT.pack(8, (time - _EPOCH) // _MICROSECOND)
