"""A model server that fails on the n-th call: the turn is FAILED, or stored after all, and never silently missing."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from memdock.errors import MemdockError
from memdock.types import TurnState
from support.adapters import RunningAdapter, fill, space, turn
from support.model_server import ToolCall
from support.words import DIMENSION, embed_words


def _completion(content: str, finish: str = "stop") -> web.Response:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reply = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return web.json_response(reply)


FAULTS: dict[str, Callable[[], web.Response]] = {
    "500": lambda: web.Response(status=500),
    "429": lambda: web.Response(status=429),
    "malformed": lambda: web.Response(body=b'{"choices": [', content_type="application/json"),
    "malformed content": lambda: _completion('{"memory": ['),
    "empty": lambda: _completion(""),
    "cut": lambda: _completion('{"memory": [{"id": "0", "te', "length"),
}
"""What comes in place of an answer; a framework asks for embeddings by the same wire, and gets the same."""


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_the_nth_call_fails(served: RunningAdapter, nth: int, fault: str, lasting: bool) -> None:
    if served.service is not None:
        pytest.skip("its models are the service's: see test_adapters_hosted.py")
    models, adapter, name = served.models, served.adapter, space()
    with served.client() as client:
        good = models.chat, models.embed
        faults = [FAULTS[fault]() for _ in range(40 if lasting else 1)]
        models.fail_from(nth, faults)
        try:
            client.add_turns(name, [turn("t1", "persimmon is the name of my cat")])
            assert client.flush(name, timeout_s=240).done
        finally:
            models.chat, models.embed = good
            models.faults.clear()
            models.skip = 0
        (record,) = client.list_turns(name)
        if record.state is TurnState.FAILED:
            assert record.error is not None
            assert record.error.reason.startswith("PROVIDER_"), f"{adapter}: {record.error}"
            client.add_turns(name, [turn("t1", "persimmon is the name of my cat")])
            assert client.flush(name, timeout_s=240).done
            (record,) = client.list_turns(name)
        assert record.state is TurnState.SEARCHABLE
        found = [each for each in client.retrieve(name, "persimmon", top_k=20).memories if "persimmon" in each.text]
        assert len(found) == 1, "stored once, whatever failed on the way"


BAD_VECTORS = {
    "not finite": [math.nan] * DIMENSION,
    "beyond 32 bits": [1e300] * DIMENSION,
    "too short": [1.0] * (DIMENSION - 1),
}


@pytest.mark.parametrize("bad", BAD_VECTORS.values(), ids=BAD_VECTORS)
def test_a_vector_that_is_none_fails_its_turn_and_leaves_the_others_be(
    served: RunningAdapter, bad: list[float]
) -> None:
    if served.service is not None:
        pytest.skip("its models are the service's: see test_adapters_hosted.py")
    models, name = served.models, space()
    with served.client() as client:
        fill(client, name, turn("t1", "persimmon is the name of my cat"))
        models.embed = lambda text: bad if "durian" in text else embed_words(text)
        try:
            client.add_turns(name, [turn("t2", "durian is the name of my dog", session="s2")])
            (failed,) = client.flush(name, timeout_s=240).failed
            with pytest.raises(MemdockError, match="The embedding model answered a vector"):
                client.retrieve(name, "durian")
        finally:
            models.embed = embed_words
        assert failed.error is not None
        assert failed.error.reason == "PROVIDER_PROTOCOL_ERROR"
        found = client.retrieve(name, "persimmon durian").memories
        assert any("persimmon" in each.text for each in found)
        assert not any("durian" in each.text for each in found)


@pytest.mark.parametrize("half", ["\\ud800", "\\udc00", "\\u0000"])
def test_a_reply_with_half_a_character_is_stored_and_blocks_nothing(served: RunningAdapter, half: str) -> None:
    models, adapter, name = served.models, served.adapter, space()

    def broken(text: str) -> str:
        return text.replace("durian", f"durian{half}").replace('"word"', f'"word{half}"')

    def chat(body: dict[str, Any]) -> str | ToolCall:
        reply = adapter.chat(body)
        return broken(reply) if isinstance(reply, str) else (reply[0], json.loads(broken(json.dumps(reply[1]))))

    with served.client() as client:
        models.chat = chat
        try:
            fill(client, name, turn("t1", "durian is the name of my dog"))
            client.retrieve(name, "durian dog")
        finally:
            models.chat = adapter.chat
        fill(client, name, turn("t2", "persimmon is the name of my cat", session="s2"))
        assert {each.state for each in client.list_turns(name)} == {TurnState.SEARCHABLE}
        assert any("persimmon" in each.text for each in client.retrieve(name, "persimmon durian", top_k=20).memories)
        assert any("durian" in each.text for each in client.list_memories(name))
        client.forget(name, turn_ids=["t1"])
        assert not any("durian" in each.text for each in client.list_memories(name))
