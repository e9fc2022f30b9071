"""What only mem0's hosted service does: pairs, events that go on by themselves, filters, times of whole seconds."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from memdock import Turn
from memdock.types import Component, Feature, TurnState
from support.adapters import MEM0_HOSTED, SAID, Adapter, RunningAdapter, declares, fill, running, space, turn
from support.fake_mem0 import FakeMem0
from support.model_server import ModelServer
from support.processes import wait_until

REPLY = Turn(turn_id="t2", session_id="s1", role="assistant", text="quince is a finer name", time=SAID)


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    """mem0's service alone."""
    if MEM0_HOSTED.name not in os.environ.get("ADAPTERS", MEM0_HOSTED.name).split():
        pytest.skip("ADAPTERS does not name it")
    return MEM0_HOSTED


@pytest.fixture(autouse=True)
def mem0(served: RunningAdapter, models: ModelServer) -> Iterator[FakeMem0]:
    """The fake behind it."""
    assert isinstance(served.service, FakeMem0)
    yield served.service
    models.latency_s = 0.0
    assert not served.service.refused


def test_a_turn_and_its_reply_are_one_add(served: RunningAdapter, mem0: FakeMem0) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"), REPLY)
        (payload,) = [event["payload"] for event in mem0.events.values()][-1:]
        assert [each["content"] for each in payload["messages"]] == ["persimmon is my cat", "quince is a finer name"]
        assert payload["timestamp"] == int(SAID.timestamp())
        found = client.retrieve(name, "persimmon cat").memories[0]
        assert {source.turn_id for source in found.sources} == {"t1", "t2"}


def test_one_half_of_a_pair_is_forgotten_and_the_other_is_added_again(served: RunningAdapter, mem0: FakeMem0) -> None:
    with served.client() as client:
        name, word = space(), f"medlar{uuid4().hex}"
        fill(client, name, turn("t1", f"{word} is my cat"), REPLY)
        shown = client.forget(name, turn_ids=["t1"], dry_run=True)
        done = client.forget(name, turn_ids=["t1"])
        assert shown.erased_turn_ids == done.erased_turn_ids == ("t1",)
        (left,) = client.list_memories(name)
        assert left.text == "quince is a finer name"
        assert [source.turn_id for source in left.sources] == ["t2"]
        assert left.time == SAID
        files = [path for path in served.folder.rglob("*") if path.is_file()]
        assert not [path for path in files if word.encode() in path.read_bytes()]
        history = {each.component: each for each in done.residual}[Component.HISTORY]
        assert not history.verified
        assert mem0.places_of([word]), "the service's events keep it, which is what the residue says"


def test_a_forget_whose_second_add_fails_ends_when_it_is_sent_again(
    served: RunningAdapter, models: ModelServer
) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"), REPLY)
        models.chat = lambda body: '{"facts"'  # no JSON: the event is FAILED
        try:
            client.forget(name, turn_ids=["t1"])
        finally:
            models.chat = MEM0_HOSTED.chat
        told = {each.turn_id: each.state for each in client.list_turns(name)}
        assert told == {"t1": TurnState.FORGOTTEN, "t2": TurnState.FAILED}
        client.forget(name, turn_ids=["t1"])
        assert [each.state for each in client.list_turns(name)] == [TurnState.FORGOTTEN, TurnState.SEARCHABLE]
        (left,) = client.list_memories(name)
        assert (left.text, [source.turn_id for source in left.sources]) == (REPLY.text, ["t2"])


def test_an_event_that_failed_is_a_turn_that_failed(served: RunningAdapter, models: ModelServer) -> None:
    with served.client() as client:
        name = space()
        models.chat = lambda body: '{"facts"'
        try:
            client.add_turns(name, [turn("t1", "persimmon is my cat")])
            assert client.flush(name, timeout_s=30).done
        finally:
            models.chat = MEM0_HOSTED.chat
        (record,) = client.list_turns(name)
        assert record.state is TurnState.FAILED
        assert record.error is not None
        assert (record.error.reason, record.error.retryable) == ("PROVIDER_PROTOCOL_ERROR", True)
        assert "persimmon" not in record.error.message


def test_an_add_that_goes_on_after_a_kill_is_waited_for_and_stored_once(models: ModelServer, tmp_path: Path) -> None:
    with running(MEM0_HOSTED, tmp_path, models) as started:
        mem0 = started.service
        assert isinstance(mem0, FakeMem0)
        mem0.held = True
        with started.client() as client:
            client.add_turns("one", [turn("t1", "persimmon is my cat")])
            client.flush("one", timeout_s=0)
            wait_until(lambda: any(each["status"] == "RUNNING" for each in mem0.events.values()), 20, "mem0 works")
        started.process.kill()
        started.process.start()
        mem0.held = False
        with started.client() as client:
            assert client.flush("one", timeout_s=60).done
            assert [each.state for each in client.list_turns("one")] == [TurnState.SEARCHABLE]
            assert len(mem0.events) == 2, "the add of before the kill, and another one"
            assert [each.text for each in client.list_memories("one")] == ["persimmon is my cat"]


def test_what_comes_of_an_add_that_was_given_up_is_not_told(models: ModelServer, tmp_path: Path) -> None:
    with running(MEM0_HOSTED, tmp_path, models, flags={"--processing-timeout": "3"}) as started:
        mem0 = started.service
        assert isinstance(mem0, FakeMem0)
        mem0.held = True
        with started.client() as client:
            pair = [turn("t1", "persimmon is my cat"), REPLY]
            client.add_turns("one", pair)
            assert client.flush("one", timeout_s=30).done
            assert {each.state for each in client.list_turns("one")} == {TurnState.FAILED}
            mem0.held = False
            wait_until(lambda: {each["status"] for each in mem0.events.values()} == {"SUCCEEDED"}, 20, "it is late")
            assert len(mem0.memories) == 2
            assert client.retrieve("one", "persimmon").memories == ()
            assert list(client.list_memories("one")) == []
            client.add_turns("one", pair)
            assert client.flush("one", timeout_s=30).done
            assert {each.state for each in client.list_turns("one")} == {TurnState.SEARCHABLE}
            assert len(mem0.memories) == 2, "the late ones are gone"
            mem0.held = True
            client.add_turns("two", [turn("t1", "medlar is my garden")])
            assert client.flush("two", timeout_s=30).done
            left = {each.component: each for each in client.forget("two", turn_ids=["t1"]).residual}
            assert not left[Component.VECTOR].verified
            mem0.held = False
            wait_until(lambda: any("medlar" in each["memory"] for each in mem0.memories.values()), 20, "it is late")
            assert client.retrieve("two", "medlar").memories == ()


def test_filters_leave_out_what_does_not_fit(served: RunningAdapter) -> None:
    day = timedelta(days=1)
    with served.client() as client:
        name = space()
        turns = [turn(f"t{n}", f"persimmon{n} is a cat", f"s{n}", SAID + n * day) for n in range(4)]
        fill(client, name, *turns, turn("t9", "persimmon9 is a cat", "s9", None))

        def found(**more: object) -> set[str]:
            return {each.text.split()[0] for each in client.retrieve(name, "cat", top_k=2, **more).memories}  # type: ignore[arg-type]

        assert found(session_ids=["s1", "s2"]) == {"persimmon1", "persimmon2"}
        assert found(since=SAID + 2 * day) == {"persimmon2", "persimmon3"}
        assert found(until=SAID + day) == {"persimmon0"}
        assert found(session_ids=["s9"], since=SAID) == set()


def test_a_time_keeps_its_part_of_a_second(served: RunningAdapter) -> None:
    said = datetime(2019, 5, 4, 10, 30, 0, 250_000, tzinfo=UTC)
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat", time=said))
        assert client.retrieve(name, "persimmon").memories[0].time == said


def test_a_named_speaker_and_a_tool_are_told_in_the_words_that_mem0_has(served: RunningAdapter, mem0: FakeMem0) -> None:
    named = Turn(turn_id="t1", session_id="s1", role="user", name="Olga", text="persimmon is my cat", time=SAID)
    tool = Turn(turn_id="t2", session_id="s2", role="tool", text="quince: 4 kg", time=SAID)
    with served.client() as client:
        fill(client, space(), named, tool)
    told = [event["payload"]["messages"][0] for event in list(mem0.events.values())[-2:]]
    assert told == [
        {"role": "user", "content": "Olga: persimmon is my cat"},
        {"role": "assistant", "content": "quince: 4 kg"},
    ]


def test_a_memory_that_others_have_put_in_is_forgotten_alone(served: RunningAdapter, mem0: FakeMem0) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        (ours,) = client.list_memories(name)
        user = str(mem0.memories[ours.memory_id]["user_id"])
        for number in range(2):
            row = {**mem0.memories[ours.memory_id], "id": f"{number}", "memory": f"medlar{number}", "metadata": None}
            mem0.memories[f"{number}"] = row
        assert user
        foreign = next(each for each in client.list_memories(name) if each.text == "medlar0")
        assert (foreign.sources, foreign.time) == ((), None)
        assert client.forget(name, memory_ids=[foreign.memory_id]).erased_memory_ids == (foreign.memory_id,)
        assert {each.text for each in client.list_memories(name)} == {"persimmon is my cat", "medlar1"}


def test_more_memories_than_a_page_are_all_listed_and_reset(served: RunningAdapter, mem0: FakeMem0) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        (ours,) = client.list_memories(name)
        row = mem0.memories[ours.memory_id]
        mem0.memories |= {f"more{n}": {**row, "id": f"more{n}", "memory": f"medlar{n}"} for n in range(450)}
        assert len(list(client.list_memories(name))) == 451
        client.reset(name)
        assert list(client.list_memories(name)) == []
        assert not [each for each in mem0.memories.values() if each["user_id"] == row["user_id"]]


def test_each_turn_may_be_an_add_alone(models: ModelServer, tmp_path: Path) -> None:
    with running(MEM0_HOSTED, tmp_path, models, flags={"--unit": "turn"}) as started, started.client() as client:
        assert not declares(client, Feature.BUFFERING)
        fill(client, "one", turn("t1", "persimmon is my cat"), REPLY)
        assert isinstance(started.service, FakeMem0)
        assert [len(each["payload"]["messages"]) for each in started.service.events.values()] == [1, 1]
