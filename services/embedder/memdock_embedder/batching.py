"""Texts of several callers in one call of the model."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memdock_embedder.backends import Embedded, Embedder, EmbedderError, InputType
from memdock_embedder.pieces import join, split


@dataclass(slots=True)
class _Piece:
    """Texts that go to the model together, and the future of the one who waits for them."""

    texts: Sequence[str]
    answer: asyncio.Future[Embedded] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class BatchingEmbedder:
    """Wraps an embedder: while the model works, what arrives is gathered, and goes to it together as one batch.

    A lone caller waits for nothing. A batch holds one kind (query, passage), at most `max_texts` and at most
    `max_characters` unless one text has more; a longer request goes in pieces, in order. While both kinds wait they
    take turns, so that a question never waits for more than one batch of passages. More than `max_waiting` pieces:
    PROVIDER_RATE_LIMITED.
    """

    def __init__(
        self, embedder: Embedder, *, max_texts: int = 16, max_characters: int = 8_000, max_waiting: int = 4096
    ) -> None:
        self._embedder = embedder
        self._max_texts = max_texts
        self._max_characters = max_characters
        self._max_waiting = max_waiting
        self._waiting: dict[InputType, deque[_Piece]] = {"query": deque(), "passage": deque()}
        self._worker: asyncio.Task[None] | None = None
        self.model = embedder.model
        self.dimension = embedder.dimension

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """See `Embedder.embed`. Where callers share a batch, tokens are shared by characters and are estimated."""
        if not texts:
            return await self._embedder.embed(texts, input_type)
        bounds = {"max_texts": self._max_texts, "max_characters": self._max_characters}
        pieces = [_Piece(piece) for piece in split(texts, **bounds)]
        if sum(map(len, self._waiting.values())) + len(pieces) > self._max_waiting:
            raise EmbedderError("PROVIDER_RATE_LIMITED", "too many texts wait for the model", retry_after_s=1.0)
        self._waiting[input_type].extend(pieces)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return join(await asyncio.gather(*(piece.answer for piece in pieces)))

    async def _work(self) -> None:
        while any(self._waiting.values()):
            for input_type, waiting in self._waiting.items():
                batch = self._take(waiting)
                if batch:
                    await self._embed(batch, input_type)

    def _take(self, waiting: deque[_Piece]) -> list[_Piece]:
        batch: list[_Piece] = []
        size = characters = 0
        while waiting:
            head = waiting[0]
            if head.answer.done():  # its caller has left
                waiting.popleft()
                continue
            size += len(head.texts)
            characters += sum(map(len, head.texts))
            if batch and (size > self._max_texts or characters > self._max_characters):
                break
            batch.append(waiting.popleft())
        return batch

    async def _embed(self, batch: Sequence[_Piece], input_type: InputType) -> None:
        try:
            embedded = await self._embedder.embed([text for piece in batch for text in piece.texts], input_type)
        except Exception as error:  # noqa: BLE001 - every waiting caller gets it
            for piece in batch:
                if not piece.answer.done():
                    piece.answer.set_exception(error)
        else:
            _share(batch, embedded)

    async def close(self) -> None:
        """Lets what waits be embedded, then closes the wrapped embedder."""
        if self._worker is not None:
            await self._worker
        await self._embedder.close()


def _share(batch: Sequence[_Piece], embedded: Embedded) -> None:
    characters = [sum(len(text) for text in piece.texts) for piece in batch]
    # Cumulative rounding, so that the shares add up to what the batch cost.
    bounds = np.floor(np.cumsum([0, *characters]) / max(1, sum(characters)) * embedded.tokens).astype(int)
    start = 0
    for index, piece in enumerate(batch):
        rows = embedded.vectors[start : start + len(piece.texts)]
        start += len(piece.texts)
        if not piece.answer.done():
            piece.answer.set_result(
                Embedded(
                    vectors=rows,
                    tokens=int(bounds[index + 1] - bounds[index]),
                    estimated=embedded.estimated or len(batch) > 1,
                    calls=embedded.calls,
                )
            )
