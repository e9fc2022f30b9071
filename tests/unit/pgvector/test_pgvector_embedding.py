"""Embedding: one bad text costs no other its vector, and what it cost is counted."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from memdock import usage
from memdock.errors import MemdockError
from memdock_embedder.backends import Embedded, EmbedderError, InputType
from memdock_pgvector.embedding import embed_passages, embed_query


class Scripted:
    """Embeds a text as its length; fails where `fails` says so."""

    model, dimension = "scripted", 1

    def __init__(self, fails: Callable[[Sequence[str]], bool], reason: str = "PROVIDER_PROTOCOL_ERROR") -> None:
        self.calls: list[list[str]] = []
        self._fails = fails
        self._reason = reason

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        self.calls.append(list(texts))
        if self._fails(texts):
            raise EmbedderError(self._reason, "it fails", retry_after_s=3.0)
        return Embedded(vectors=np.array([[len(text)] for text in texts], dtype=np.float32), tokens=len(texts))

    async def close(self) -> None:
        return None


async def test_all_texts_go_to_the_model_at_once() -> None:
    embedder = Scripted(lambda texts: False)
    with usage.collect() as meter:
        vectors = await embed_passages(embedder, ["a", "bb"])
    assert [vector.tolist() for vector in vectors if not isinstance(vector, MemdockError)] == [[1.0], [2.0]]
    assert embedder.calls == [["a", "bb"]]
    assert [(one.model, one.purpose, one.calls, one.input_tokens) for one in meter.models] == [
        ("scripted", "embedding", 1, 2)
    ]
    assert [one.stage for one in meter.timing] == ["embed"]


async def test_one_bad_text_fails_alone() -> None:
    embedder = Scripted(lambda texts: "bad" in texts)
    answers = await embed_passages(embedder, ["a", "bad", "c"])
    assert [isinstance(answer, MemdockError) for answer in answers] == [False, True, False]
    failure = answers[1]
    assert isinstance(failure, MemdockError)
    assert (failure.reason, failure.retry_after_s) == ("PROVIDER_PROTOCOL_ERROR", 3.0)


async def test_a_model_that_takes_no_text_is_not_asked_for_each() -> None:
    embedder = Scripted(lambda texts: True)
    answers = await embed_passages(embedder, [str(place) for place in range(50)])
    assert all(isinstance(answer, MemdockError) for answer in answers)
    assert len(embedder.calls) == 4, "all at once, then three alone"


@pytest.mark.parametrize("reason", ["PROVIDER_TIMEOUT", "PROVIDER_UNREACHABLE", "PROVIDER_RATE_LIMITED"])
async def test_a_model_that_is_away_is_asked_once(reason: str) -> None:
    embedder = Scripted(lambda texts: True, reason)
    answers = await embed_passages(embedder, ["a", "b", "c"])
    assert [answer.reason for answer in answers if isinstance(answer, MemdockError)] == [reason] * 3
    assert len(embedder.calls) == 1


async def test_a_query_that_cannot_be_embedded_raises() -> None:
    with pytest.raises(MemdockError, match="it fails"):
        await embed_query(Scripted(lambda texts: True), "q")
