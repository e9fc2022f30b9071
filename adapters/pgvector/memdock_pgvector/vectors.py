"""pgvector's `vector` in PostgreSQL's binary format: two big-endian 16-bit numbers (dimension, 0), then float32s."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

_HEADER = struct.Struct(">HH")


def pack_vector(vector: NDArray[np.float32]) -> bytes:
    """One row of numbers as it goes over the wire."""
    return _HEADER.pack(len(vector), 0) + vector.astype(">f4").tobytes()


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return pack_vector(obj)


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Any) -> NDArray[np.float32]:
        return np.frombuffer(data, dtype=">f4", offset=_HEADER.size).astype(np.float32)


async def register_vector(connection: AsyncConnection) -> None:
    """Lets one-dimensional numpy arrays be parameters of this connection, and binary results be such arrays."""
    info = await TypeInfo.fetch(connection, "vector")
    if info is None:
        raise LookupError("the extension vector is not in the search path")
    info.register(connection)
    dumper = type("VectorDumper", (_VectorDumper,), {"oid": info.oid})
    connection.adapters.register_dumper(np.ndarray, dumper)
    connection.adapters.register_loader(info.oid, _VectorLoader)
