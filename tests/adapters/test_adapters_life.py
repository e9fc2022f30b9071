"""What every adapter does with turns: stored, found, forgotten, counted, through kills of its process."""

import asyncio
from uuid import uuid4

import pytest

from memdock.types import Feature, TurnState
from support.adapters import SAID, RunningAdapter, declares, fill, running, space, turn
from support.meters import meter_of, write_config
from support.processes import wait_until


def test_what_was_said_is_found_with_its_time_and_its_turn(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is the name of my cat"), turn("t2", "my brother lives in Kazan", "s2"))
        found = client.retrieve(name, "persimmon cat").memories
        assert "persimmon" in found[0].text
        if declares(client, Feature.SOURCES):
            assert [(each.session_id, each.turn_id) for each in found[0].sources] == [("s1", "t1")]
        if declares(client, Feature.EVENT_TIME):
            assert found[0].time == SAID
        assert client.retrieve(space(), "persimmon").memories == ()


def test_the_time_of_a_turn_reaches_the_framework(served: RunningAdapter) -> None:
    if not served.adapter.tells_time:
        pytest.skip(f"{served.adapter} gives its model no time")
    with served.client() as client:
        fill(client, space(), turn("t1", "yesterday I bought a quince"), turn("t2", "today I ate it"))
    prompts = [str(body["messages"]) for kind, body in served.models.requests if kind == "chat"]
    assert any("2019-05-04" in prompt for prompt in prompts)


def test_no_time_is_invented(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat", time=None))
        (found, *_) = client.retrieve(name, "persimmon cat").memories
        assert (found.time, found.valid_from, found.valid_to) == (None, None, None)


def test_nothing_to_remember_is_told_as_that(served: RunningAdapter) -> None:
    with served.client() as client:
        if not declares(client, Feature.NO_MEMORY):
            pytest.skip("it declares no NO_MEMORY")
        name = space()
        fill(client, name, turn("t1", "small talk"))
        assert [each.state for each in client.list_turns(name)] == [TurnState.NO_MEMORY]


def test_spaces_do_not_see_each_other(served: RunningAdapter) -> None:
    with served.client() as client:
        ours, theirs = space(), space()
        fill(client, ours, turn("t1", "persimmon is my cat"))
        fill(client, theirs, turn("t1", "quince is my dog"))
        assert all("persimmon" not in each.text for each in client.retrieve(theirs, "persimmon cat").memories)
        (memory, *_) = client.retrieve(ours, "persimmon").memories
        if declares(client, Feature.FORGET_MEMORIES):
            assert client.forget(theirs, memory_ids=[memory.memory_id]).not_found == (memory.memory_id,)
        client.reset(theirs)
        assert client.retrieve(ours, "persimmon").memories


def test_a_memory_has_one_name(served: RunningAdapter) -> None:
    with served.client() as client:
        if not declares(client, Feature.FORGET_MEMORIES):
            pytest.skip("it declares no FORGET_MEMORIES")
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        (memory_id,) = [each.memory_id for each in client.list_memories(name)]
        others = [memory_id.upper(), f"{{{memory_id}}}", f"urn:uuid:{memory_id}", f" {memory_id}", memory_id[:-1]]
        others += [memory_id.replace("-", "")] if "-" in memory_id else []
        forgotten = client.forget(name, memory_ids=others)
        assert (forgotten.not_found, forgotten.erased_memory_ids, forgotten.erased_turn_ids) == (tuple(others), (), ())
        assert [each.memory_id for each in client.list_memories(name)] == [memory_id]


@pytest.mark.parametrize("by", ["turn", "memory", "reset"])
def test_what_is_forgotten_is_in_no_store_no_file_and_no_log(served: RunningAdapter, by: str) -> None:
    word, kept = f"persimmon{uuid4().hex}", f"quince{uuid4().hex}"
    with served.client() as client:
        name, sibling = space(), space()
        fill(client, sibling, turn("t1", f"{kept} is my dog"))
        fill(client, name, turn("t1", f"{word} is the name of my cat"), turn("t2", "the weather is nice", "s2"))
        client.retrieve(name, word)
        places = served.places_of([word])
        assert places, "the framework keeps it somewhere, or the search is blind"
        if by == "reset":
            residual = client.reset(name).residual
        elif by == "turn":
            if not declares(client, Feature.FORGET_TURNS):
                pytest.skip("it declares no FORGET_TURNS")
            residual = client.forget(name, turn_ids=["t1"]).residual
        else:
            if not declares(client, Feature.FORGET_MEMORIES):
                pytest.skip("it declares no FORGET_MEMORIES")
            (memory, *_) = client.retrieve(name, word).memories
            residual = client.forget(name, memory_ids=[memory.memory_id]).residual
        left = served.places_of([word])
        admitted = any(each.items or not each.verified for each in residual)
        assert not left or admitted, f"left without a word of it: {left}"
        assert served.places_of([kept]), "the sibling's is still there"
        assert all(word not in each.text for each in client.retrieve(name, word).memories)


async def test_every_model_call_is_counted_as_the_model_server_saw_it(
    served: RunningAdapter, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Through the meter: what the system tells, what the meter counts and what the server saw are one number."""
    if served.service is not None:
        pytest.skip("its models are the service's")
    adapter, models, folder = served.adapter, served.models, tmp_path_factory.mktemp("metered")
    systems = {"systems": {"a": {"chat": "models", "embeddings": "models"}}}
    async with meter_of(write_config(folder, models.url, **systems)) as meter:

        def use() -> dict[str, int]:
            with running(adapter, folder, models, url=f"{meter.root}/s/a/v1") as started, started.client() as client:
                models.requests.clear()
                fill(client, "one", turn("t1", "persimmon is my cat"), turn("t2", "quince is my dog", "s2"))
                chat = started.seen("chat")
                client.retrieve("one", "persimmon")
                told: dict[str, int] = {}
                for line in client.flush("one", timeout_s=0).space_usage:
                    kind = "embeddings" if line.purpose == "embedding" else "chat"
                    told[kind] = told.get(kind, 0) + line.calls
                assert chat == 2 * adapter.chat_calls
                return told

        told = await asyncio.to_thread(use)
        counted = await meter.usage()
        metered = {line["kind"]: line["requests"] for line in counted.values()}
        of_space = {line["kind"]: line["requests"] for line in (await meter.usage("/s/a/t/one")).values()}
    seen = {kind: sum(each == kind for each, _ in models.requests) for kind in metered}
    assert told == metered == of_space == seen


def test_the_data_of_another_system_is_refused(served: RunningAdapter) -> None:
    refused = pytest.raises(AssertionError, match="has the data of the system")
    with refused, running(served.adapter, served.folder.parent, served.models, flags={"--system": "another"}):
        raise RuntimeError("it serves")


def test_a_kill_in_the_middle_loses_no_turn_and_stores_none_twice(
    served: RunningAdapter, tmp_path_factory: pytest.TempPathFactory
) -> None:
    models = served.models
    with running(served.adapter, tmp_path_factory.mktemp("killed"), models) as started:
        words = [f"persimmon{number}" for number in range(8)]
        with started.client() as client:
            models.requests.clear()
            models.latency_s = 0.05
            client.add_turns("one", [turn(f"t{n}", f"{word} is a cat", f"s{n}") for n, word in enumerate(words)])
            client.flush("one", timeout_s=0)  # nothing waits for a reply any longer
            wait_until(lambda: len(models.requests) >= 3, 60, "a part of the turns is worked on")
        started.process.kill()
        models.latency_s = 0.0
        started.process.start()
        with started.client() as client:
            assert client.flush("one", timeout_s=120).done
            for word in words:
                found = [each for each in client.retrieve("one", word, top_k=20).memories if word in each.text]
                assert len(found) == 1, f"{word}: {len(found)} times"
