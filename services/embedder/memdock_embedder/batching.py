"""Texts of several callers in one call of the model."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memdock_embedder.backends import Embedded, Embedder, EmbedderError, InputType


@dataclass(slots=True)
class _Waiting:
    texts: Sequence[str]
    input_type: InputType
    answer: asyncio.Future[Embedded] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class BatchingEmbedder:
    """Wraps an embedder: while the model works, what arrives is gathered, and goes to it together as one batch.

    A lone caller waits for nothing. Batches keep the order of arrival, one kind (query, passage) a batch, and hold at
    most `max_texts` unless one caller brings more. More than `max_waiting` callers: PROVIDER_RATE_LIMITED.
    """

    def __init__(self, embedder: Embedder, *, max_texts: int = 64, max_waiting: int = 256) -> None:
        self._embedder = embedder
        self._max_texts = max_texts
        self._max_waiting = max_waiting
        self._waiting: deque[_Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None
        self.model = embedder.model
        self.dimension = embedder.dimension

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """See `Embedder.embed`. A caller's tokens are its share of the batch by characters."""
        if not texts:
            return await self._embedder.embed(texts, input_type)
        if len(self._waiting) >= self._max_waiting:
            raise EmbedderError("PROVIDER_RATE_LIMITED", "too many requests wait for the model", retry_after_s=1.0)
        waiting = _Waiting(texts, input_type)
        self._waiting.append(waiting)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await waiting.answer

    async def _work(self) -> None:
        while self._waiting:
            batch = self._take()
            if not batch:
                continue
            try:
                embedded = await self._embedder.embed([t for w in batch for t in w.texts], batch[0].input_type)
            except Exception as error:  # noqa: BLE001 - every waiting caller gets it
                for waiting in batch:
                    if not waiting.answer.done():
                        waiting.answer.set_exception(error)
                continue
            _share(batch, embedded)

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._waiting:
            head = self._waiting[0]
            if head.answer.done():  # its caller has left
                self._waiting.popleft()
                continue
            if batch and (head.input_type != batch[0].input_type or size + len(head.texts) > self._max_texts):
                break
            batch.append(self._waiting.popleft())
            size += len(head.texts)
        return batch

    async def close(self) -> None:
        """Lets the batch in work end, then closes the wrapped embedder."""
        if self._worker is not None:
            await self._worker
        await self._embedder.close()


def _share(batch: Sequence[_Waiting], embedded: Embedded) -> None:
    characters = [sum(len(text) for text in waiting.texts) for waiting in batch]
    # Cumulative rounding, so that the shares add up to what the batch cost.
    bounds = np.floor(np.cumsum([0, *characters]) / max(1, sum(characters)) * embedded.tokens).astype(int)
    start = 0
    for index, waiting in enumerate(batch):
        rows = embedded.vectors[start : start + len(waiting.texts)]
        start += len(waiting.texts)
        if not waiting.answer.done():
            waiting.answer.set_result(
                Embedded(
                    vectors=rows,
                    tokens=int(bounds[index + 1] - bounds[index]),
                    estimated=embedded.estimated or len(batch) > 1,
                    calls=embedded.calls,
                )
            )
