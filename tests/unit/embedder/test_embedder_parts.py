"""The embedder's parts: the bundled model, the cache, batches across callers, prefixes, the wire."""

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from memdock_embedder import Embedded, EmbedderError, InputType, open_embedder
from memdock_embedder.batching import BatchingEmbedder
from memdock_embedder.cache import CachedEmbedder
from memdock_embedder.pieces import Parts, split
from memdock_embedder.sentence import prefixes_of
from memdock_embedder.wire import Limits, RequestError, read_request


class Lengths:
    """Embeds a text as its length, and keeps each call."""

    model, dimension = "lengths", 2

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], InputType]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        await self.gate.wait()
        if texts:
            self.calls.append((list(texts), input_type))
        if "poison" in texts:
            raise EmbedderError("PROVIDER_PROTOCOL_ERROR", "no")
        rows = [[len(text), 1.0 if input_type == "query" else 2.0] for text in texts]
        tokens = sum(len(text) for text in texts)
        return Embedded(vectors=np.array(rows, dtype=np.float32).reshape(len(texts), 2), tokens=tokens)

    async def close(self) -> None:
        pass


async def test_bundled_model_tells_queries_from_passages_and_finds_the_right_passage() -> None:
    embedder = await open_embedder("bundled")
    passages = ["Мой кот Барсик спит на подоконнике", "The train to Yaroslavl leaves at seven"]
    stored = await embedder.embed(passages, "passage")
    asked = await embedder.embed(["как зовут кота?", "when does the train leave?"], "query")
    again = await embedder.embed(passages[:1], "passage")
    assert stored.vectors.shape == (2, embedder.dimension)
    assert np.allclose(np.linalg.norm(stored.vectors, axis=1), 1, atol=1e-5)
    assert (asked.vectors @ stored.vectors.T).argmax(axis=1).tolist() == [0, 1]
    assert np.array_equal(again.vectors[0], stored.vectors[0])
    assert not np.array_equal((await embedder.embed(passages[:1], "query")).vectors, again.vectors)
    assert stored.tokens > 10
    await embedder.close()


async def test_cache_embeds_a_text_once_and_keeps_kinds_and_models_apart(tmp_path: Path) -> None:
    source = Lengths()
    cached = CachedEmbedder(source, tmp_path / "cache.sqlite")
    first = await cached.embed(["a", "bb", "a"], "passage")
    second = await cached.embed(["bb", "ccc"], "passage")
    await cached.embed(["a"], "query")
    assert source.calls == [(["a", "bb"], "passage"), (["ccc"], "passage"), (["a"], "query")]
    assert first.vectors[:, 0].tolist() == [1, 2, 1]
    assert second.vectors[:, 0].tolist() == [2, 3]
    assert (first.tokens, second.tokens) == (3, 3)
    await cached.close()
    other = Lengths()
    other.model = "another"
    reopened = CachedEmbedder(other, tmp_path / "cache.sqlite")
    await reopened.embed(["a"], "passage")
    assert other.calls == [(["a"], "passage")]
    await reopened.close()


async def test_cache_file_holds_no_text(tmp_path: Path) -> None:
    cached = CachedEmbedder(Lengths(), tmp_path / "cache.sqlite")
    await cached.embed(["kumquat marmalade"], "passage")
    await cached.close()
    assert all(b"kumquat" not in path.read_bytes() for path in tmp_path.iterdir())


async def test_a_cache_that_another_process_just_begins_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("memdock_embedder.cache.time.sleep", lambda _: other.execute("COMMIT"))
    await CachedEmbedder(Lengths(), tmp_path / "cache.sqlite").close()
    assert not other.in_transaction, "the first attempt met the lock"
    other.close()


async def test_callers_that_arrive_while_the_model_works_share_one_batch() -> None:
    source = Lengths()
    batching = BatchingEmbedder(source, max_texts=8)
    source.gate.clear()
    first = asyncio.create_task(batching.embed(["first"], "passage"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    later = [asyncio.create_task(batching.embed([f"{i}" * (i + 1)], "passage")) for i in range(5)]
    query = asyncio.create_task(batching.embed(["q"], "query"))
    await asyncio.sleep(0)
    source.gate.set()
    answers = await asyncio.gather(*later)
    assert [answer.vectors[0, 0] for answer in answers] == [1, 2, 3, 4, 5]
    assert (await query).vectors[0, 1] == 1.0
    assert (await first).vectors[0, 0] == 5
    assert [len(texts) for texts, _ in source.calls] == [1, 1, 5]
    assert sum(answer.tokens for answer in answers) == 15
    await batching.close()


async def test_a_long_request_goes_in_batches_and_a_question_waits_for_one_of_them_only() -> None:
    source = Lengths()
    batching = BatchingEmbedder(source, max_texts=2)
    source.gate.clear()
    passages = asyncio.create_task(batching.embed(["a", "bb", "ccc", "dddd", "eeeee"], "passage"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    question = asyncio.create_task(batching.embed(["q"], "query"))
    await asyncio.sleep(0)
    source.gate.set()
    embedded = await passages
    assert embedded.vectors[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert (embedded.tokens, embedded.calls) == (15, 3)
    assert (await question).tokens == 1
    assert [texts for texts, _ in source.calls] == [["a", "bb"], ["q"], ["ccc", "dddd"], ["eeeee"]]
    await batching.close()


async def test_callers_take_turns_so_that_a_short_text_is_not_behind_all_of_a_long_request() -> None:
    source = Lengths()
    batching = BatchingEmbedder(source, max_bytes=10)
    await asyncio.gather(
        batching.embed(["a" * 6, "b" * 6, "c" * 6, "d"], "passage"), batching.embed(["short"], "passage")
    )
    assert [texts for texts, _ in source.calls] == [["aaaaaa"], ["short"], ["bbbbbb"], ["cccccc", "d"]]
    await batching.close()


async def test_no_text_however_long_is_more_than_a_batch_of_work() -> None:
    source = Lengths()
    batching = BatchingEmbedder(source)
    source.gate.clear()
    long = asyncio.create_task(batching.embed(["мост " * 7_000], "passage"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    question = asyncio.create_task(batching.embed(["q"], "query"))
    await asyncio.sleep(0)
    source.gate.set()
    await asyncio.gather(long, question)
    assert source.calls[1] == (["q"], "query")
    assert max(sum(len(text.encode()) for text in texts) for texts, _ in source.calls) <= 2_000
    assert "".join(text for texts, kind in source.calls for text in texts if kind == "passage") == "мост " * 7_000
    await batching.close()


async def test_the_vector_of_a_long_text_is_the_mean_of_its_parts_and_short_ones_stay_as_they_are() -> None:
    source = Lengths()
    embedded = await BatchingEmbedder(source).embed(["x" * 3_000, "yy"], "passage")
    parts = (await source.embed(["x" * 2_000, "x" * 1_000], "passage")).vectors
    mean = (2 * parts[0] + parts[1]) / np.linalg.norm(2 * parts[0] + parts[1])
    assert np.allclose(embedded.vectors, [mean, [2, 2]], atol=1e-6)
    assert embedded.tokens == 3_002


async def test_closing_waits_for_one_batch_and_tells_who_is_left() -> None:
    source = Lengths()
    source.gate.clear()
    batching = BatchingEmbedder(source, max_texts=1)
    in_work, left = (asyncio.create_task(batching.embed(texts, "passage")) for texts in (["a"], ["b", "c"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    closing = asyncio.create_task(batching.close())
    await asyncio.sleep(0)
    source.gate.set()
    await closing
    assert (await in_work).tokens == 1
    with pytest.raises(EmbedderError, match="PROVIDER_UNREACHABLE: the embedder is closed"):
        await left
    with pytest.raises(EmbedderError, match="PROVIDER_UNREACHABLE: the embedder is closed"):
        await batching.embed(["d"], "query")
    assert len(source.calls) == 1


@pytest.mark.parametrize("max_bytes", [4, 7, 50])
def test_a_text_is_cut_behind_white_space_and_inside_no_character(max_bytes: int) -> None:
    text = "кот спит\n🙂🙂 longerword漢字漢字漢字 a  b"
    parts = Parts.of([text, "ab"], max_bytes=max_bytes)
    assert "".join(parts.parts) == text + "ab"
    assert all(0 < len(part.encode()) <= max_bytes for part in parts.parts)
    assert parts.counts == [len(parts.parts) - 1, 1]
    assert Parts.of(["one two six"], max_bytes=9).parts == ["one two ", "six"]


def test_pieces_keep_order_and_both_bounds() -> None:
    assert split(["a", "b", "c"], max_texts=2, max_bytes=9) == [["a", "b"], ["c"]]
    assert split(["aa", "bbbbb", "я"], max_texts=9, max_bytes=3) == [["aa"], ["bbbbb"], ["я"]]
    assert split([], max_texts=2, max_bytes=9) == []


async def test_a_text_that_two_callers_bring_at_once_is_embedded_once(tmp_path: Path) -> None:
    source = Lengths()
    batching = BatchingEmbedder(CachedEmbedder(source, tmp_path / "cache.sqlite"))
    await asyncio.gather(*(batching.embed(["same"], "passage") for _ in range(3)))
    assert source.calls == [(["same"], "passage")]
    await batching.close()


async def test_a_cache_that_cannot_be_written_is_told_and_heals(tmp_path: Path) -> None:
    cached = CachedEmbedder(Lengths(), tmp_path / "cache.sqlite")
    with sqlite3.connect(tmp_path / "cache.sqlite") as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON embedding BEGIN SELECT RAISE(FAIL, 'disk is full'); END")
    with pytest.raises(EmbedderError, match=r"PROVIDER_UNREACHABLE: the embedding cache .* disk is full"):
        await cached.embed(["a"], "passage")
    with sqlite3.connect(tmp_path / "cache.sqlite") as other:
        other.execute("DROP TRIGGER full")
    assert (await cached.embed(["a"], "passage")).vectors[0, 0] == 1
    other.close()
    await cached.close()


async def test_the_default_model_answers_a_question_while_it_works_on_long_texts() -> None:
    embedder = await open_embedder("bundled")
    long = asyncio.create_task(embedder.embed(["word " * 12_000] * 20, "passage"))  # minutes of work
    async with asyncio.timeout(30):
        assert (await embedder.embed(["where is it?"], "query")).vectors.shape == (1, embedder.dimension)
    assert not long.done()
    long.cancel()
    await embedder.close()


async def test_a_failed_batch_fails_its_callers_and_no_others() -> None:
    batching = BatchingEmbedder(Lengths())
    with pytest.raises(EmbedderError):
        await batching.embed(["poison"], "passage")
    assert (await batching.embed(["fine"], "passage")).vectors[0, 0] == 4
    await batching.close()


async def test_too_many_waiting_callers_are_refused_with_a_time() -> None:
    source = Lengths()
    source.gate.clear()
    batching = BatchingEmbedder(source, max_waiting=1)
    tasks = [asyncio.create_task(batching.embed(["x"], "passage")) for _ in range(2)]
    for _ in range(3):
        await asyncio.sleep(0)
    held = asyncio.create_task(batching.embed(["x"], "query"))
    await asyncio.sleep(0)
    outcomes = [task for task in (*tasks, held) if task.done()]
    assert len(outcomes) == 1
    with pytest.raises(EmbedderError, match="too many") as caught:
        await outcomes[0]
    assert caught.value.retry_after_s
    source.gate.set()
    await asyncio.gather(*(task for task in (*tasks, held) if task not in outcomes))
    await batching.close()


async def test_a_batch_whose_callers_all_left_is_skipped() -> None:
    source = Lengths()
    source.gate.clear()
    batching = BatchingEmbedder(source)
    first = asyncio.create_task(batching.embed(["first"], "passage"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    left = asyncio.create_task(batching.embed(["left"], "passage"))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    source.gate.set()
    await first
    await batching.close()
    assert [texts for texts, _ in source.calls] == [["first"]]


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("ai-forever/FRIDA", "search_query: ", "search_document: "),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: ", ""),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
    ],
)
def test_prefixes(model: str, query: str, passage: str) -> None:
    prefixes = prefixes_of(model)
    assert prefixes["query"].startswith(query)
    assert bool(prefixes["query"]) == bool(query)
    assert prefixes["passage"] == passage


@pytest.mark.parametrize(
    ("spec", "key", "sentence"),
    [
        ("bundle", "", "unknown embedder 'bundle': expected bundled | "),
        ("sentence-transformers:", "", "unknown embedder 'sentence-transformers:': expected"),
        (
            "http://127.0.0.1:1/v1",
            "",
            "the embedder 'http://127.0.0.1:1/v1' names no model: write http://127.0.0.1:1/v1#M",
        ),
        ("http://#m", "", "the embedder's address 'http://' is not http(s)://host:port/v1"),
        ("http://host:port/v1#m", "", "the embedder's address 'http://host:port/v1' is not"),
        ("http://host:99999/v1#m", "", "the embedder's address"),
        ("http://127.0.0.1:1/v1#m", "two\nlines", "the embedder's key holds what no header can carry"),
        ("http://127.0.0.1:1/v1#m", "ключ", "the embedder's key holds what no header can carry"),
    ],
)
async def test_an_embedder_that_cannot_be_is_refused_in_a_sentence(spec: str, key: str, sentence: str) -> None:
    with pytest.raises(EmbedderError) as caught:
        await open_embedder(spec, api_key=key)
    assert caught.value.reason == "VALIDATION_FAILED"
    assert caught.value.message.startswith(sentence)


async def test_a_cache_that_cannot_be_opened_is_told_in_a_sentence(tmp_path: Path) -> None:
    no_cache = tmp_path / "letter.txt"
    no_cache.write_text("Dear Anna, " * 100)
    for path in (no_cache, tmp_path, no_cache / "below"):
        with pytest.raises(EmbedderError, match=r"VALIDATION_FAILED: the embedding cache .* cannot be opened, name"):
            await open_embedder("bundled", cache=path)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], "body"),
        ({"input": "x", "inputtype": "query"}, "inputtype"),
        ({"input": []}, "input"),
        ({"input": [1, 2]}, "input"),
        ({"input": ["ok", ""]}, "input[1]"),
        ({"input": ["nul\0"]}, "input[0]"),
        ({"input": ["x" * 11]}, "input[0]"),
        ({"input": ["x"] * 4}, "input"),
        ({"input": "x", "input_type": "document"}, "input_type"),
        ({"input": "x", "model": "other"}, "model"),
        ({"input": "x", "dimensions": 7}, "dimensions"),
        ({"input": "x", "encoding_format": "int8"}, "encoding_format"),
    ],
)
def test_a_bad_request_names_its_field(body: object, param: str) -> None:
    limits = Limits(max_texts=3, max_text_bytes=10)
    with pytest.raises(RequestError) as caught:
        read_request(json.dumps(body).encode(), model="m", dimension=2, limits=limits)
    assert caught.value.param == param
