"""What only Zep Cloud does: times of facts, long turns, pages, and what its deletion leaves."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memdock.errors import MemdockError
from memdock.types import Component, Feature, Limits, TurnState
from support.adapters import SAID, ZEP_CLOUD, Adapter, RunningAdapter, declares, fill, hosted_chat, running, space, turn
from support.fake_zep import FakeZep
from support.model_server import ModelServer


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    """Zep Cloud alone."""
    if ZEP_CLOUD.name not in os.environ.get("ADAPTERS", ZEP_CLOUD.name).split():
        pytest.skip("ADAPTERS does not name it")
    return ZEP_CLOUD


@pytest.fixture(autouse=True)
def zep(served: RunningAdapter, models: ModelServer) -> Iterator[FakeZep]:
    """The fake behind it, empty."""
    assert isinstance(served.service, FakeZep)
    for state in (served.service.users, served.service.threads, served.service.episodes):
        state.clear()
    yield served.service
    models.chat = hosted_chat
    assert not served.service.refused


def test_a_fact_has_the_times_that_zep_gives_it(served: RunningAdapter, models: ModelServer) -> None:
    fact = {"fact": "quince was a cat", "valid_at": "2019-04-01T00:00:00Z", "invalid_at": "2019-05-01T00:00:00+00:00"}
    models.chat = lambda body: json.dumps({"facts": [fact]})
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "Quince died on the first of May"))
        (found,) = client.retrieve(name, "quince").memories
        assert (found.valid_from, found.valid_to) == (
            datetime(2019, 4, 1, tzinfo=UTC),
            datetime(2019, 5, 1, tzinfo=UTC),
        )
        assert found.time == SAID
        assert found.score is None, "ranks of a fusion are no scores"


def test_a_long_turn_is_several_messages_and_one_turn(served: RunningAdapter, zep: FakeZep) -> None:
    said = " ".join(f"word{number}" for number in range(6000))[: 64 * 1024 - 10]
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", said), turn("t2", "quince is my dog"))
        ours = [each.message for each in zep.episodes.values() if each.message["metadata"]["turn_id"] == "t1"]
        pieces = [str(message["content"]) for message in ours]
        assert "".join(pieces) == said
        assert len(pieces) > 20
        assert {message["created_at"] for message in ours} == {SAID.isoformat()}
        assert client.forget(name, turn_ids=["t1"]).erased_turn_ids == ("t1",)
        assert [each.text for each in client.list_memories(name)] == ["quince is my dog"]


def test_more_turns_than_a_request_takes_keep_their_order(served: RunningAdapter, zep: FakeZep) -> None:
    turns = [turn(f"t{number}", f"word{number} is a cat", f"s{number % 2}") for number in range(70)]
    with served.client() as client:
        name = space()
        fill(client, name, *turns)
        listed = list(client.list_memories(name))
        assert len(listed) == 70, "over pages of 50"
        assert {source.turn_id for each in listed for source in each.sources} == {each.turn_id for each in turns}
        states = {each.state for each in client.list_turns(name)}
        assert states == {TurnState.SEARCHABLE}
        assert len(client.retrieve(name, "cat", top_k=50).memories) == 50
        with pytest.raises(MemdockError) as told:
            client.retrieve(name, "cat", top_k=51)
        assert "top_k" in str(told.value)
    for session in ("s0", "s1"):
        said = [each.message["metadata"] for each in zep.episodes.values()]
        numbers = [
            int(each["turn_id"][1:]) for each in said if each["session_id"] == session and "t" in each["turn_id"]
        ]
        assert numbers == sorted(numbers)


def test_it_says_what_it_has_not(served: RunningAdapter) -> None:
    with served.client() as client:
        assert not declares(client, Feature.FILTER_SESSIONS)
        assert not declares(client, Feature.USAGE)
        assert not declares(client, Feature.SCORES)
        assert client.describe().limits.max_top_k == 50 != Limits().max_top_k
        with pytest.raises(MemdockError) as told:
            client.retrieve(space(), "cat", session_ids=["s1"])
        assert told.value.reason == "FILTER_UNSUPPORTED"


def test_summaries_of_entities_are_residue_that_is_not_verified(served: RunningAdapter, zep: FakeZep) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"), turn("t2", "quince is my dog"))
        left = {each.component: each for each in client.forget(name, turn_ids=["t1"]).residual}
        assert not left[Component.GRAPH].verified
        assert "summaries" in left[Component.GRAPH].note
        assert zep.places_of(["persimmon"]), "the fake keeps the word in the summary of the speaker"
        rest = {each.component: each for each in client.forget(name, turn_ids=["t2"]).residual}
        assert (rest[Component.GRAPH].items, rest[Component.GRAPH].verified) == (0, True), "no entity is left"
        assert not zep.places_of(["persimmon", "quince"])


def test_a_fact_that_two_turns_tell_goes_with_either(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"), turn("t2", "persimmon is my cat", "s2"))
        (found,) = client.retrieve(name, "persimmon").memories
        assert {source.turn_id for source in found.sources} == {"t1", "t2"}
        shown = client.forget(name, turn_ids=["t1"], dry_run=True)
        done = client.forget(name, turn_ids=["t1"])
        assert shown.erased_memory_ids == done.erased_memory_ids == (found.memory_id,)
        assert client.retrieve(name, "persimmon").memories == ()


def test_a_user_that_somebody_has_deleted_is_made_again(served: RunningAdapter, zep: FakeZep) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        for state in (zep.users, zep.threads, zep.episodes):
            state.clear()
        assert client.retrieve(name, "persimmon").memories == ()
        fill(client, name, turn("t2", "quince is my dog"))
        assert [each.text for each in client.retrieve(name, "quince").memories] == ["quince is my dog"]


def test_after_a_restart_a_fact_still_knows_its_turn(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
    served.process.stop()
    served.process.start()
    with served.client() as client:
        (found,) = client.retrieve(name, "persimmon").memories
        assert found.time == SAID
        assert [source.turn_id for source in found.sources] == ["t1"]


def test_a_reranker_gives_scores(models: ModelServer, tmp_path: Path) -> None:
    flags = {"--reranker": "cross_encoder"}
    with running(ZEP_CLOUD, tmp_path, models, flags=flags) as started, started.client() as client:
        name = space()
        assert declares(client, Feature.SCORES)
        fill(client, name, turn("t1", "persimmon is my cat"), turn("t2", "quince is my dog"))
        scores = [each.score for each in client.retrieve(name, "persimmon cat").memories]
        assert None not in scores
        assert scores == sorted(scores, key=lambda score: -(score or 0))
