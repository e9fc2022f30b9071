"""Texts of several callers in one call of a model that runs here, and long work in small calls of it."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from memdock_embedder.backends import Embedded, Embedder, EmbedderError, InputType
from memdock_embedder.pieces import Parts, join, size_of

WINDOW_BYTES = 2_000
"""About 512 tokens, all that most small models read at once."""


@dataclass(slots=True, eq=False, kw_only=True)
class _Request:
    """One caller's texts. `answers`: those of the parts that were embedded so far, which are the first."""

    parts: Sequence[str]
    taken: int = 0
    answers: list[Embedded] = field(default_factory=list)
    answer: asyncio.Future[Embedded] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class BatchingEmbedder:
    """Wraps an embedder: while the model works, what arrives is gathered, and goes to it together as one batch.

    A lone caller waits for nothing. A text longer than the model's window is cut into parts, so that all of it counts
    and none stops the others: its vector is the mean of theirs, weighted by length. A batch holds parts of one kind
    (query, passage), at most `max_texts` and `max_bytes` unless one has more, of each caller the next in turn; while
    both kinds wait they take turns. So a query waits for one batch of passages, and a short text beside long requests
    for one part of each. More than `max_waiting` callers: PROVIDER_RATE_LIMITED.
    """

    def __init__(
        self, embedder: Embedder, *, max_texts: int = 16, max_bytes: int = WINDOW_BYTES, max_waiting: int = 1024
    ) -> None:
        self._embedder = embedder
        self._max_texts = max_texts
        self._max_bytes = max_bytes
        self._max_waiting = max_waiting
        self._waiting: dict[InputType, deque[_Request]] = {"query": deque(), "passage": deque()}
        self._worker: asyncio.Task[None] | None = None
        self._closed = False
        self.model = embedder.model
        self.dimension = embedder.dimension

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """See `Embedder.embed`. Where callers share a batch, tokens are shared by bytes and are estimated."""
        if self._closed:
            raise _closed()
        if not texts:
            return await self._embedder.embed(texts, input_type)
        if sum(map(len, self._waiting.values())) >= self._max_waiting:
            raise EmbedderError("PROVIDER_RATE_LIMITED", "too many callers wait for the model", retry_after_s=1.0)
        parts = Parts.of(texts, max_bytes=WINDOW_BYTES)
        request = _Request(parts=parts.parts)
        self._waiting[input_type].append(request)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return parts.whole(await request.answer)

    async def _work(self) -> None:
        while any(self._waiting.values()):
            for input_type, waiting in self._waiting.items():
                batch = self._take(waiting)
                if batch:
                    await self._embed(batch, input_type)

    def _take(self, waiting: deque[_Request]) -> dict[_Request, list[str]]:
        """The next batch: of each caller the next part, in turn, until it is full."""
        batch: dict[_Request, list[str]] = {}
        count = size = 0
        while waiting:
            request = waiting[0]
            if request.answer.done():  # its caller has left
                waiting.popleft()
                continue
            part = request.parts[request.taken]
            count += 1
            size += size_of(part)
            if batch and (count > self._max_texts or size > self._max_bytes):
                break
            batch.setdefault(request, []).append(part)
            request.taken += 1
            waiting.popleft()
            if request.taken < len(request.parts):
                waiting.append(request)
        return batch

    async def _embed(self, batch: Mapping[_Request, Sequence[str]], input_type: InputType) -> None:
        try:
            embedded = await self._embedder.embed([part for parts in batch.values() for part in parts], input_type)
        except Exception as error:  # noqa: BLE001 - every waiting caller gets it
            for request in batch:
                if not request.answer.done():
                    request.answer.set_exception(error)
        else:
            _share(batch, embedded)

    async def close(self) -> None:
        """Lets the batch in work end and closes the wrapped embedder; whoever waits gets PROVIDER_UNREACHABLE."""
        self._closed = True
        for request in [*self._waiting["query"], *self._waiting["passage"]]:
            if not request.answer.done():
                request.answer.set_exception(_closed())
        if self._worker is not None:
            await self._worker
        await self._embedder.close()


def _closed() -> EmbedderError:
    return EmbedderError("PROVIDER_UNREACHABLE", "the embedder is closed")


def _share(batch: Mapping[_Request, Sequence[str]], embedded: Embedded) -> None:
    sizes = [sum(map(size_of, parts)) for parts in batch.values()]
    # Cumulative rounding, so that the shares add up to what the batch cost.
    bounds = np.floor(np.cumsum([0, *sizes]) / max(1, sum(sizes)) * embedded.tokens).astype(int)
    start = 0
    for place, (request, parts) in enumerate(batch.items()):
        request.answers.append(
            Embedded(
                vectors=embedded.vectors[start : start + len(parts)],
                tokens=int(bounds[place + 1] - bounds[place]),
                estimated=embedded.estimated or len(batch) > 1,
                calls=embedded.calls,
            )
        )
        start += len(parts)
        if request.taken == len(request.parts) and not request.answer.done():
            request.answer.set_result(join(request.answers))
