"""The seam: what every source of embeddings satisfies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

InputType = Literal["query", "passage"]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Vectors of n texts, in their order.

    `vectors`: float32, shape (n, dimension), rows of unit length. `tokens`: what the model read, prefixes included;
    `estimated` where it was not counted. `calls`: calls of the model; 0 where all came from a cache.
    """

    vectors: Vectors
    tokens: int
    estimated: bool = False
    calls: int = 1


class EmbedderError(Exception):
    """Embedding failed. `reason` is a word of the protocol's error table; `message` is for people.

    `reason`: PROVIDER_..., or VALIDATION_FAILED where an embedder cannot be opened as it was asked for.
    `retry_after_s`: what the endpoint asked for, where it did.
    """

    def __init__(self, reason: str, message: str, *, retry_after_s: float | None = None) -> None:
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        super().__init__(f"{reason}: {message}")


class Embedder(Protocol):
    """A source of embeddings. Queries and passages differ: most models want to be told which one a text is."""

    @property
    def model(self) -> str:
        """The model's name; equal names give equal vectors for equal texts."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """Embeds n >= 0 texts; raises `EmbedderError`, and then nothing was embedded."""

    async def close(self) -> None:
        """Frees what the source holds; harmless twice."""


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to unit length; a row of zeros or with a number that is not finite raises `EmbedderError`."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(norms)) or np.any(norms == 0):
        raise EmbedderError(
            "PROVIDER_PROTOCOL_ERROR", "the embedding model answered a vector of zeros or of no numbers"
        )
    return np.asarray(vectors / norms, dtype=np.float32)
