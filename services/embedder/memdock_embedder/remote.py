"""Any endpoint that speaks OpenAI's `/v1/embeddings`, ours included."""

import asyncio
import math
import random
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import numpy as np
import orjson

from memdock_embedder.backends import Embedded, EmbedderError, InputType, unit
from memdock_embedder.pieces import Parts, join, size_of, split

MAX_TEXTS = 128
MAX_TEXT_BYTES = 8_000
"""No text has more tokens than bytes, and OpenAI's models refuse one of more than 8,192 tokens."""
MAX_REQUEST_BYTES = 16_000
MAX_PASSAGE_REQUESTS = 4
MAX_TOKENS_A_BYTE = 100
TRIES = 4
LONGEST_WAIT_S = 60.0
"""An endpoint that wants to be asked later than this has failed."""
SLOWEST_BYTES_S = 200.0
"""A model on a busy processor reads some 500 bytes a second; a request has time for less than half of that."""


class RemoteEmbedder:
    """`url` is the base that `/embeddings` is added to (`http://host:port/v1`). Made by `RemoteEmbedder.connect`.

    `input_type` is sent along unless `plain`: servers that do not know the field may refuse it. A text of more than
    8,000 bytes is cut into parts; its vector is the mean of theirs, weighted by length. Long input goes in requests of
    at most 128 texts and 16,000 bytes, each with `timeout_s` and a second for every 200 bytes; at most 4 requests with
    passages are under way, so that their time is not used up in the endpoint's queue. 429, 5xx and a lost connection
    are tried again, at most 4 times in all, after Retry-After where it is given.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, model: str, *, timeout_s: float, plain: bool) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._url = url.rstrip("/") + "/embeddings"
        self._plain = plain
        self._passages = asyncio.Semaphore(MAX_PASSAGE_REQUESTS)
        self.model = model
        self.dimension = 0

    @classmethod
    async def connect(
        cls, url: str, model: str, *, api_key: str = "", timeout_s: float = 60.0, plain: bool = False
    ) -> "RemoteEmbedder":
        """Opens the endpoint and asks it for one vector, to learn the dimension."""
        _check(url, api_key)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        session = aiohttp.ClientSession(headers=headers)
        embedder = cls(session, url, model, timeout_s=timeout_s, plain=plain)
        try:
            embedder.dimension = (await embedder.embed(["dimension"], "query")).vectors.shape[1]
        except BaseException:
            await session.close()
            raise
        return embedder

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """See `Embedder.embed`."""
        if not texts:
            return Embedded(vectors=np.empty((0, self.dimension), dtype=np.float32), tokens=0, calls=0)
        parts = Parts.of(texts, max_bytes=MAX_TEXT_BYTES)
        pieces = split(parts.parts, max_texts=MAX_TEXTS, max_bytes=MAX_REQUEST_BYTES)
        return parts.whole(join([await self._embed(piece, input_type) for piece in pieces]))

    async def _embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        if input_type == "query":
            return await self._post(texts, input_type)
        async with self._passages:
            return await self._post(texts, input_type)

    async def _post(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        body: dict[str, Any] = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        if not self._plain:
            body["input_type"] = input_type
        timeout = aiohttp.ClientTimeout(total=self._timeout_s + sum(map(size_of, texts)) / SLOWEST_BYTES_S)
        for attempt in range(1, TRIES + 1):
            try:
                return self._read(await self._send(body, timeout), texts)
            except EmbedderError as error:
                asked_s = error.retry_after_s or 0.0
                if attempt == TRIES or error.reason not in RETRIED or asked_s > LONGEST_WAIT_S:
                    raise
                await asyncio.sleep(asked_s or random.uniform(0, 0.2 * 2**attempt))  # noqa: S311 - jitter
        raise AssertionError("unreachable")

    async def _send(self, body: dict[str, Any], timeout: aiohttp.ClientTimeout) -> bytes:
        try:
            async with self._session.post(
                self._url, data=orjson.dumps(body), headers={"Content-Type": "application/json"}, timeout=timeout
            ) as answer:
                payload = await answer.read()
                if answer.status != 200:
                    raise _refusal(answer.status, answer.headers.get("Retry-After"))
                return payload
        except TimeoutError:
            raise EmbedderError(
                "PROVIDER_TIMEOUT", f"the embedding endpoint {self._url} did not answer in time"
            ) from None
        except aiohttp.ClientError as cause:
            raise EmbedderError(
                "PROVIDER_UNREACHABLE", f"the embedding endpoint {self._url} cannot be reached: {type(cause).__name__}"
            ) from cause

    def _read(self, payload: bytes, texts: Sequence[str]) -> Embedded:
        try:
            answer = orjson.loads(payload)
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = np.asarray([row["embedding"] for row in rows], dtype=np.float32)
            told = usage.get("prompt_tokens") if isinstance(usage := answer.get("usage"), dict) else None
        except (ValueError, KeyError, TypeError) as cause:
            raise EmbedderError(
                "PROVIDER_PROTOCOL_ERROR", "the embedding endpoint answered no list of vectors"
            ) from cause
        if vectors.ndim != 2 or [row["index"] for row in rows] != list(range(len(texts))):
            raise EmbedderError(
                "PROVIDER_PROTOCOL_ERROR", f"the embedding endpoint answered {len(rows)} vectors for {len(texts)} texts"
            )
        if self.dimension and vectors.shape[1] != self.dimension:
            raise EmbedderError(
                "PROVIDER_PROTOCOL_ERROR",
                f"the embedding endpoint answered {vectors.shape[1]} dimensions after {self.dimension}",
            )
        # True and false are no numbers, and no model makes a hundred tokens of a byte. A count of 0 is one: a cache had
        # every vector.
        if type(told) is int and 0 <= told <= MAX_TOKENS_A_BYTE * sum(map(size_of, texts)):
            return Embedded(vectors=unit(vectors), tokens=told)
        # Four characters a token: the usual rule of thumb where the endpoint does not count.
        return Embedded(vectors=unit(vectors), tokens=sum(map(len, texts)) // 4 + 1, estimated=True)

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()


RETRIED = frozenset({"PROVIDER_RATE_LIMITED", "PROVIDER_UNREACHABLE", "PROVIDER_TIMEOUT"})


def _check(url: str, api_key: str) -> None:
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0  # a port that is none raises
    except ValueError:
        is_whole = False
    if not is_whole:
        raise EmbedderError("VALIDATION_FAILED", f"the embedder's address {url!r} is not http(s)://host:port/v1")
    if not (api_key.isascii() and api_key.isprintable()):
        raise EmbedderError(
            "VALIDATION_FAILED", "the embedder's key holds what no header can carry: give one line of ASCII"
        )


def _wait_s(retry_after: str | None) -> float | None:
    """Seconds of a header Retry-After; `None` without one, and for what is no wait: negative, or without end."""
    try:
        wait_s = float(retry_after or "")
    except ValueError:
        return None
    return wait_s if math.isfinite(wait_s) and wait_s >= 0 else None


def _refusal(status: int, retry_after: str | None) -> EmbedderError:
    wait_s = _wait_s(retry_after)
    if status in (401, 403):
        return EmbedderError("PROVIDER_AUTH_FAILED", f"the embedding endpoint refused the key (HTTP {status})")
    if status == 429:
        return EmbedderError(
            "PROVIDER_RATE_LIMITED", "the embedding endpoint is over its rate (HTTP 429)", retry_after_s=wait_s
        )
    if status >= 500:
        return EmbedderError(
            "PROVIDER_UNREACHABLE", f"the embedding endpoint failed (HTTP {status})", retry_after_s=wait_s
        )
    return EmbedderError("PROVIDER_PROTOCOL_ERROR", f"the embedding endpoint refused the request (HTTP {status})")
