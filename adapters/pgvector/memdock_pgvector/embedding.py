"""Vectors for texts: counted, timed, and with the one text apart that the model cannot take."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memdock import usage
from memdock.errors import MemdockError, error
from memdock_embedder.backends import Embedder, EmbedderError, InputType

# So many failures one after the other mean that the model is away, not that a text is bad.
GIVE_UP_AFTER = 3

Vector = NDArray[np.float32]


async def embed_query(embedder: Embedder, text: str) -> Vector:
    """The vector of a query; raises what `MemdockError` the embedder's failure is."""
    vectors = await _embed(embedder, [text], "query")
    return vectors[0]


async def embed_passages(embedder: Embedder, texts: Sequence[str]) -> list[Vector | MemdockError]:
    """One vector a text, in order, or why there is none.

    All texts go to the model at once. When it answers that wrongly they go one by one, so that a text which it does not
    take costs no other its vector; after three failures in a row the rest fail like the third. When it cannot be asked,
    all fail.
    """
    try:
        return [*await _embed(embedder, texts, "passage")]
    except MemdockError as failure:
        if len(texts) == 1 or failure.reason != "PROVIDER_PROTOCOL_ERROR":
            return [failure] * len(texts)
    answers: list[Vector | MemdockError] = []
    for text in texts:
        last = answers[-GIVE_UP_AFTER:]
        if len(last) == GIVE_UP_AFTER and all(isinstance(answer, MemdockError) for answer in last):
            answers.append(last[-1])
        else:
            answers.append(await _embed_one(embedder, text))
    return answers


async def _embed_one(embedder: Embedder, text: str) -> Vector | MemdockError:
    try:
        return (await _embed(embedder, [text], "passage"))[0]
    except MemdockError as failure:
        return failure


async def _embed(embedder: Embedder, texts: Sequence[str], input_type: InputType) -> list[Vector]:
    with usage.stage("embed"):
        try:
            embedded = await embedder.embed(texts, input_type)
        except EmbedderError as cause:
            raise error(cause.reason, cause.message, retry_after_s=cause.retry_after_s) from cause
    if embedded.calls:
        usage.count(
            model=embedder.model,
            purpose="embedding",
            calls=embedded.calls,
            input_tokens=embedded.tokens,
            estimated=embedded.estimated,
        )
    return list(embedded.vectors)
