"""A user's turn and its reply that were added together: each can be forgotten without the other."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from aiohttp import web

from memdock import Client, Turn
from memdock.errors import AbortedError, MemdockError
from memdock.types import Component, Forgotten, TurnState
from support.adapters import SAID, Adapter, RunningAdapter, space, turn
from support.gateways import gateway_over
from support.model_server import ModelServer
from support.processes import wait_until


@pytest.fixture(scope="module")
def adapter(adapter: Adapter) -> Adapter:
    """Those that add a pair at once."""
    if not adapter.pairs:
        pytest.skip(f"{adapter} adds each turn alone")
    return adapter


@pytest.fixture(autouse=True)
def _answers(models: ModelServer) -> Iterator[None]:
    yield
    models.faults.clear()
    models.skip = 0


class Pair:
    """A turn and its reply, with a word in each that stands nowhere else."""

    def __init__(self) -> None:
        self.asked, self.replied = f"persimmon{uuid4().hex}", f"quince{uuid4().hex}"
        self.turns = [
            turn("t1", f"{self.asked} is the name of my cat"),
            Turn(turn_id="t2", session_id="s1", role="assistant", text=f"{self.replied} is a finer name", time=SAID),
        ]


@pytest.fixture
def pair() -> Pair:
    return Pair()


def fill_pair(client: Client, name: str, pair: Pair) -> None:
    client.add_turns(name, [*pair.turns, turn("t3", "medlar is my garden", "s2")])
    flushed = client.flush(name, timeout_s=120)
    assert flushed.done
    assert not flushed.failed


def check_half_is_left(served: RunningAdapter, client: Client, name: str, pair: Pair) -> None:
    """The reply is found once, knows its turn alone, and of what was forgotten no file, table or log has a word."""
    found = [each for each in client.retrieve(name, pair.replied, top_k=20).memories if pair.replied in each.text]
    assert [[source.turn_id for source in each.sources] for each in found] == [["t2"]]
    assert any("medlar" in each.text for each in client.retrieve(name, "medlar", top_k=20).memories)
    assert all(pair.asked not in each.text for each in client.list_memories(name))
    told = {each.turn_id: each for each in client.list_turns(name)}
    assert {each.turn_id: each.state for each in told.values()} == {
        "t1": TurnState.FORGOTTEN,
        "t2": TurnState.SEARCHABLE,
        "t3": TurnState.SEARCHABLE,
    }
    assert set(told["t2"].memory_ids) == {
        each.memory_id for each in client.list_memories(name) if "t2" in {source.turn_id for source in each.sources}
    }
    check_no_word(served, pair.asked)


def check_no_word(served: RunningAdapter, word: str) -> None:
    """Kuzu's file keeps erased rows until it writes over them, which the residue says."""
    assert [place for place in served.places_of([word]) if "kuzu" not in place] == []


def test_one_half_goes_and_the_other_is_found_as_before(served: RunningAdapter, pair: Pair) -> None:
    name = space()
    with served.client() as client:
        fill_pair(client, name, pair)
        served.models.requests.clear()
        forgotten = client.forget(name, turn_ids=["t1"])
        assert forgotten.erased_turn_ids == ("t1",)
        assert (graph_or_vectors(forgotten), len(forgotten.usage) > 0) == (0, True)
        prompts = [str(body) for _, body in served.models.requests]
        assert any(pair.replied in prompt for prompt in prompts)
        assert all(pair.asked not in prompt for prompt in prompts)
        check_half_is_left(served, client, name, pair)
        assert client.forget(name, turn_ids=["t2"]).erased_turn_ids == ("t2",)
        assert [each.text for each in client.list_memories(name) if "medlar" not in each.text] == []
        check_no_word(served, pair.replied)


def graph_or_vectors(forgotten: Forgotten) -> int:
    counted = [each for each in forgotten.residual if each.component in (Component.VECTOR, Component.GRAPH)]
    assert counted
    assert all(each.verified for each in counted)
    return sum(each.items for each in counted)


@pytest.mark.parametrize("by", ["both", "session", "memory", "reset"])
def test_of_what_goes_whole_nothing_is_kept(served: RunningAdapter, pair: Pair, by: str) -> None:
    name = space()
    with served.client() as client:
        fill_pair(client, name, pair)
        served.models.requests.clear()
        if by == "reset":
            client.reset(name)
        else:
            (memory,) = [each for each in client.list_memories(name) if pair.replied in each.text]
            forgotten = (
                client.forget(name, turn_ids=["t1", "t2"])
                if by == "both"
                else client.forget(name, session_ids=["s1"])
                if by == "session"
                else client.forget(name, memory_ids=[memory.memory_id])
            )
            assert set(forgotten.erased_turn_ids) == {"t1", "t2"}
        assert not served.seen("chat"), "nothing is added again"
        check_no_word(served, pair.asked)
        check_no_word(served, pair.replied)


def test_a_dry_run_tells_one_half_and_takes_nothing(served: RunningAdapter, pair: Pair) -> None:
    name = space()
    with served.client() as client:
        fill_pair(client, name, pair)
        before = {each.memory_id for each in client.list_memories(name)}
        assert client.forget(name, turn_ids=["t2"], dry_run=True).erased_turn_ids == ("t2",)
        assert {each.memory_id for each in client.list_memories(name)} == before


def test_a_half_that_holds_nothing_alone_has_no_memory(served: RunningAdapter, pair: Pair) -> None:
    name = space()
    with served.client() as client:
        small = Turn(turn_id="t2", session_id="s1", role="assistant", text=f"small talk {pair.replied}", time=SAID)
        client.add_turns(name, [pair.turns[0], small])
        assert client.flush(name, timeout_s=120).done
        client.forget(name, turn_ids=["t1"])
        (left,) = [each for each in client.list_turns(name) if each.turn_id == "t2"]
        assert (left.state, left.memory_ids) == (TurnState.NO_MEMORY, ())
        assert list(client.list_memories(name)) == []


@pytest.mark.parametrize("mended_by", ["the same Forget", "the turn, sent again"])
def test_a_half_that_a_model_fails_is_told_and_can_be_stored_again(
    served: RunningAdapter, pair: Pair, mended_by: str
) -> None:
    name = space()
    with served.client() as client:
        fill_pair(client, name, pair)
        served.models.fail_from(1, [web.Response(status=400) for _ in range(4)])  # a framework may try again itself
        client.forget(name, turn_ids=["t1"])
        served.models.faults.clear()
        (left,) = [each for each in client.list_turns(name) if each.turn_id == "t2"]
        assert left.error is not None
        assert (left.state, left.error.reason, left.memory_ids) == (TurnState.FAILED, "PROVIDER_PROTOCOL_ERROR", ())
        if mended_by == "the same Forget":
            client.forget(name, turn_ids=["t1"])
        else:
            client.add_turns(name, [pair.turns[1]])
            assert client.flush(name, timeout_s=60).done
        check_half_is_left(served, client, name, pair)


def test_of_a_half_that_a_model_fails_nothing_is_left_when_it_is_forgotten(served: RunningAdapter, pair: Pair) -> None:
    name = space()
    with served.client() as client:
        fill_pair(client, name, pair)
        served.models.fail_from(1, [web.Response(status=400) for _ in range(4)])
        client.forget(name, turn_ids=["t1"])
        served.models.faults.clear()
        assert client.forget(name, turn_ids=["t2"]).erased_turn_ids == ("t2",)
        check_no_word(served, pair.asked)
        check_no_word(served, pair.replied)


def test_a_model_that_is_away_for_a_while_ends_in_the_same_answer(served: RunningAdapter, pair: Pair) -> None:
    name = space()
    with served.client() as client:
        fill_pair(client, name, pair)
        served.models.fail_from(1, [web.Response(status=503) for _ in range(4)])  # more than a client tries by itself
        with suppress(MemdockError):  # IN_PROGRESS: it goes on
            client.forget(name, turn_ids=["t1"], request_id="once")
        wait_until(lambda: not served.models.faults, 60, "the model is asked again")
        wait_until(lambda: _forgotten(client, name), 60, "the erasure ends")
        check_half_is_left(served, client, name, pair)


def _forgotten(client: Client, name: str) -> bool:
    try:
        return client.forget(name, turn_ids=["t1"], request_id="once").erased_turn_ids == ("t1",)
    except AbortedError:  # IN_PROGRESS
        return False


@pytest.mark.parametrize("nth", [1, 2])
def test_a_kill_between_erasing_and_adding_again_loses_nothing(served: RunningAdapter, pair: Pair, nth: int) -> None:
    """At the first request to a model, when the pair is erased, and at one that follows it."""
    name = space()
    with served.client(timeout_s=3) as client:
        fill_pair(client, name, pair)
        served.models.requests.clear()
        served.models.skip, served.models.faults[:] = nth - 1, ["hang"]
        with pytest.raises(MemdockError):  # its time is over, or the erasure goes on
            client.forget(name, turn_ids=["t1"], request_id="once")
        wait_until(lambda: len(served.models.requests) >= nth, 60, "the half is being added again")
    served.process.kill()
    served.models.faults.clear()
    served.process.start()
    with served.client() as client:
        wait_until(lambda: _forgotten(client, name), 60, "the erasure ends")
        check_half_is_left(served, client, name, pair)


async def test_behind_the_gateway_one_half_goes_too(
    served: RunningAdapter, pair: Pair, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It refuses an answer that tells turns as erased which were not selected."""
    name, system = space(), served.adapter.name
    address = f"grpc://127.0.0.1:{served.process.ports()['grpc']}"
    folder: Path = await asyncio.to_thread(tmp_path_factory.mktemp, "gateway")
    async with gateway_over(folder, [{"name": system, "address": address}]) as gateway:
        for face, selected, left, gone in (
            ("grpc", "t1", pair.replied, pair.asked),
            ("http", "t2", pair.asked, pair.replied),
        ):
            async with gateway.client(face, system) as client:
                await client.add_turns(name + face, pair.turns)
                assert (await client.flush(name + face, timeout_s=60)).done
                forgotten = await client.forget(name + face, turn_ids=[selected])
                assert forgotten.erased_turn_ids == (selected,)
                texts = [each.text for each in (await client.retrieve(name + face, left, top_k=20)).memories]
                assert [left in text for text in texts] == [True]
                assert all(gone not in text for text in texts)
