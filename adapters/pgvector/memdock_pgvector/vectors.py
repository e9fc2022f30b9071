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


def pack_vectors(vectors: NDArray[np.float32]) -> list[bytes]:
    """The rows of an array of shape (n, dimension) as they go over the wire."""
    header = _HEADER.pack(vectors.shape[1], 0)
    return [header + row.tobytes() for row in vectors.astype(">f4")]


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return pack_vectors(obj.reshape(1, -1))[0]


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
