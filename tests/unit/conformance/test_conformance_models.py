"""The scripted model server on its wire."""

import asyncio
import json
import math

import aiohttp
import pytest

from memdock.conformance.case import UnprovenError
from memdock.conformance.models import SECRET, Fault, Models, embed, serving

CHAT = {
    "model": "m",
    "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "about Kazan"}],
}


async def post(models: Models, call: str, body: object) -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.post(f"{models.url}/{call}", json=body) as answer:
        return answer.status, await answer.read()


def saying(words: str) -> Models:
    return Models(lambda body, worthless: words)


def cosine(first: list[float], second: list[float]) -> float:
    dot = sum(a * b for a, b in zip(first, second, strict=True))
    return dot / math.sqrt(sum(a * a for a in first) * sum(b * b for b in second))


def test_texts_that_share_words_are_near() -> None:
    assert embed("a b c") == embed("A B C")
    assert cosine(embed("my neighbour Bodaki"), embed("who is Bodaki")) > 0.2
    assert abs(cosine(embed("alpha beta"), embed("gamma delta"))) < 0.2
    assert cosine(embed(""), embed("  ")) == pytest.approx(1.0)


async def test_both_calls_answer_and_are_counted_by_word() -> None:
    async with serving(Models()) as models:
        for word in ("Kazan", "Omsk"):
            models.expect(word)
        status, body = await post(models, "chat/completions", CHAT)
        assert (status, b'"content":"about Kazan"' in body) == (200, True)
        status, body = await post(models, "embeddings", {"model": "m", "input": ["in kazan", "omsk"]})
        assert status == 200
        assert [models.count(word) for word in ("Kazan", "Omsk")] == [2, 1]
        assert [(one.kind, one.input_tokens, one.output_tokens) for one in models.answered] == [
            ("chat", 4, 2),
            ("embeddings", 3, 0),
        ]
        models.nothing("Kazan")
        assert b'"content":""' in (await post(models, "chat/completions", CHAT))[1]
        assert (await post(models, "embeddings", {"model": "m"}))[0] == 400


async def test_a_json_object_is_what_an_offered_tool_is_called_with() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("remember", "recall")]
    for said, called in (('{"facts": []}', True), ("nothing of it", False)):
        async with serving(saying(said)) as models:
            for offered in ({}, {"tools": tools}):
                _, body = await post(models, "chat/completions", CHAT | offered)
                (choice,) = json.loads(body)["choices"]
                if called and offered:
                    (call,) = choice["message"]["tool_calls"]
                    assert call["function"] == {"name": "remember", "arguments": said}
                    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "tool_calls")
                else:
                    assert choice["message"] == {"role": "assistant", "content": said}
                    assert choice["finish_reason"] == "stop"


async def test_faults_meet_requests_with_their_word_alone() -> None:
    async with serving(Models()) as models:
        models.expect("Kazan")
        good = (await post(models, "chat/completions", CHAT))[1]
        models.fail("Kazan", Fault(status=401))
        status, body = await post(models, "chat/completions", CHAT)
        assert (status, SECRET.encode() in body) == (401, True)
        models.fail("Kazan", Fault(broken="cut"))
        assert good.startswith((await post(models, "chat/completions", CHAT))[1])
        models.fail("Kazan", Fault(broken="empty"))
        assert await post(models, "chat/completions", CHAT) == (200, b"")
        assert (await post(models, "embeddings", {"model": "m", "input": "Omsk"}))[0] == 200
        models.fail("Kazan", None)
        assert (await post(models, "chat/completions", CHAT))[1] == good


async def test_a_held_request_waits_until_it_is_released() -> None:
    async with serving(Models()) as models:
        models.expect("Kazan")
        models.hold("Kazan")
        asked = asyncio.create_task(post(models, "chat/completions", CHAT))
        await models.arrival("Kazan")
        assert not asked.done()
        models.release("Kazan")
        assert (await asked)[0] == 200
        models.hold("Kazan")
        with pytest.raises(UnprovenError):
            await models.arrival("Kazan", 0.01)
        models.forget(["Kazan"])
