"""What mem0's graph memory would lose, keep or mix up, and the adapter does not."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from memdock import Client
from memdock.types import Component, Feature, Forgotten, Residue, TurnState
from support.adapters import MEM0G, Adapter, RunningAdapter, declares, environment, fill, mem0g_chat, space, turn
from support.model_server import ModelServer, ToolCall
from support.processes import clean_environment

Triple = tuple[str, str, str]


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    """mem0g alone."""
    if MEM0G.name not in os.environ.get("ADAPTERS", MEM0G.name).split():
        pytest.skip("ADAPTERS does not name it")
    return MEM0G


@pytest.fixture(autouse=True)
def _usual_words(models: ModelServer) -> Iterator[None]:
    usual = models.chat, models.embed
    yield
    models.chat, models.embed = usual


def script(models: ModelServer, relations: Mapping[str, Sequence[Triple]], outdated: Sequence[Triple] = ()) -> None:
    """`relations` are drawn from the texts; `outdated` is taken back by a text that has the word "longer"."""

    def chat(body: dict[str, Any]) -> str | ToolCall:
        tool, said = body["tools"][0]["function"]["name"], body["messages"][-1]["content"]
        drawn = next((found for text, found in relations.items() if said.endswith(text)), None)
        if tool == "delete_graph_memory" and "longer" in said.partition("New Information: ")[2]:
            ((source, relationship, destination),) = outdated
            return tool, {"source": source, "relationship": relationship, "destination": destination}
        if drawn is None or tool == "delete_graph_memory":
            return mem0g_chat(body)
        if tool == "extract_entities":
            names = [name for source, _, destination in drawn for name in (source, destination)]
            return tool, {"entities": [{"entity": name, "entity_type": "thing"} for name in names]}
        return tool, {"entities": [{"source": a, "relationship": b, "destination": c} for a, b, c in drawn]}

    models.chat = chat


def texts(client: Client, name: str) -> set[str]:
    return {each.text for each in client.list_memories(name)}


def in_graph(forgotten: Forgotten) -> Residue:
    (residue,) = [each for each in forgotten.residual if each.component is Component.GRAPH]
    return residue


def calls(*arguments: Any) -> web.Response:
    """A reply with one call for each of the arguments, of whatever tool mem0 asks for first."""
    made = [
        {"id": str(place), "type": "function", "function": {"name": "extract_entities", "arguments": json.dumps(each)}}
        for place, each in enumerate(arguments)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reply = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return web.json_response(reply)


def test_it_says_that_it_knows_no_time(served: RunningAdapter) -> None:
    with served.client() as client:
        assert not any(declares(client, each) for each in (Feature.EVENT_TIME, Feature.FILTER_TIME, Feature.SCORES))


@pytest.mark.parametrize(
    "wrong",
    [{}, {"entities": "persimmon"}, {"entities": [{"entity_type": "cat"}]}, {"entities": [{"entity": 7}]}, []],
    ids=["no list", "text", "no name", "number", "list"],
)
def test_a_call_of_another_shape_is_a_failure_and_not_nothing(served: RunningAdapter, wrong: Any) -> None:
    name = space()
    with served.client() as client:
        served.models.fail_from(1, [calls(wrong)])
        client.add_turns(name, [turn("t1", "persimmon is my cat")])
        assert client.flush(name, timeout_s=60).done
        (record,) = client.list_turns(name)
        assert record.state is TurnState.FAILED
        assert record.error is not None
        assert record.error.reason == "PROVIDER_PROTOCOL_ERROR"


def test_of_several_calls_in_a_reply_none_is_lost(served: RunningAdapter) -> None:
    """mem0 reads relations from the first call alone; `required` makes models give one call for each more often."""
    name = space()
    with served.client() as client:
        person = {"entities": [{"entity": "anna", "entity_type": "person"}]}
        cat = {"entities": [{"entity": "persimmon", "entity_type": "cat"}]}
        served.models.fail_from(1, [calls(person, cat)])
        fill(client, name, turn("t1", "anna has persimmon"))
        (prompt,) = [
            body["messages"][-1]["content"] for _, body in served.models.requests if "List of entities" in str(body)
        ]
        assert "['anna', 'persimmon']" in prompt


def test_the_speaker_is_shown_as_user_and_not_as_the_space(served: RunningAdapter) -> None:
    name = f"Anna-{space()}"
    with served.client() as client:
        fill(client, name, turn("t1", "persimmon is my cat"))
        assert texts(client, name) == {"persimmon -- is_my_cat -- user"}


def test_what_the_system_says_is_no_memory_and_can_be_forgotten(served: RunningAdapter) -> None:
    name = space()
    with served.client() as client:
        fill(client, name, replace(turn("t1", "be brief"), role="system"))
        assert [each.state for each in client.list_turns(name)] == [TurnState.NO_MEMORY]
        assert not served.models.requests
        assert client.forget(name, turn_ids=["t1"]).erased_turn_ids == ("t1",)


def test_a_relation_of_two_turns_goes_with_the_last_of_them(served: RunningAdapter) -> None:
    name, likes = space(), [("anna", "likes", "tea")]
    script(served.models, {"anna likes tea": likes, "tea is what anna likes": [*likes, ("anna", "has", "a cat")]})
    with served.client() as client:
        fill(client, name, turn("t1", "anna likes tea"), turn("t2", "tea is what anna likes", "s2"))
        forgotten = client.forget(name, turn_ids=["t2"])
        assert forgotten.erased_turn_ids == ("t2",)
        assert texts(client, name) == {"anna -- likes -- tea"}
        assert [[each.turn_id for each in memory.sources] for memory in client.list_memories(name)] == [["t1"]]
        residue = in_graph(client.forget(name, turn_ids=["t1"]))
        assert residue.items == 0
        assert texts(client, name) == set()


@pytest.mark.parametrize("told_again", [False, True])
def test_what_a_later_turn_made_outdated_does_not_come_back_with_a_half(
    served: RunningAdapter, told_again: bool
) -> None:
    name, kazan, omsk = space(), ("anna", "lives_in", "kazan"), ("anna", "lives_in", "omsk")
    drawn = {"one\ntwo": [kazan, ("anna", "likes", "tea")], "one": [kazan, ("anna", "has", "a cat")]}
    script(served.models, {**drawn, "no longer": [omsk], "kazan again": [kazan]}, [kazan])
    with served.client() as client:
        fill(
            client, name, turn("t1", "one"), replace(turn("t2", "two"), role="assistant"), turn("t3", "no longer", "s2")
        )
        assert texts(client, name) == {"anna -- likes -- tea", "anna -- lives_in -- omsk"}
        if told_again:
            fill(client, name, turn("t4", "kazan again", "s2"))
        assert client.forget(name, turn_ids=["t2"]).erased_turn_ids == ("t2",)
        left = {"anna -- lives_in -- omsk"} | ({"anna -- lives_in -- kazan"} if told_again else set())
        assert texts(client, name) == left | {"anna -- has -- a_cat"}
        client.forget(name, turn_ids=["t1"])
        assert texts(client, name) == left


def test_a_forgotten_name_at_which_others_stand_is_told(served: RunningAdapter) -> None:
    """mem0 takes a near node for a name: what one turn says is then told with the words of another."""
    name = space()
    near = served.models.embed
    served.models.embed = lambda text: near("doctor" if text in ("surgeon", "physician") else text)
    script(served.models, {"one": [("boris", "is_a", "surgeon")], "two": [("vera", "is_a", "physician")]})
    with served.client() as client:
        fill(client, name, turn("t1", "one"), turn("t2", "two", "s2"))
        assert texts(client, name) == {"boris -- is_a -- surgeon", "vera -- is_a -- surgeon"}
        residue = in_graph(client.forget(name, turn_ids=["t1"]))
        assert texts(client, name) == {"vera -- is_a -- surgeon"}
        assert residue.items == 1
        assert "other turns" in residue.note


def test_what_is_outdated_leaves_nothing_alone_and_is_nobodys(served: RunningAdapter) -> None:
    name, smokes, sings = space(), ("anna", "smokes", "a_pipe"), ("anna", "sings", "a_song")
    script(served.models, {"one": [smokes], "no longer": [sings], "again": [smokes]}, outdated=[smokes])
    with served.client() as client:
        fill(client, name, turn("t1", "one"))
        fill(client, name, turn("t2", "no longer", "s2"))
        assert texts(client, name) == {"anna -- sings -- a_song"}
        fill(client, name, turn("t3", "again", "s3"))
        client.forget(name, turn_ids=["t3"])
        assert texts(client, name) == {"anna -- sings -- a_song"}, "the first turn's was taken back long ago"


def test_an_add_that_fails_takes_nothing_back(served: RunningAdapter) -> None:
    """mem0 erases what is outdated before it embeds what is new; here it is one transaction."""
    name, smokes = space(), ("anna", "smokes", "a_pipe")
    script(served.models, {"one": [smokes], "no longer": [("anna", "sings", "a_song")]}, outdated=[smokes])
    with served.client() as client:
        fill(client, name, turn("t1", "one"))
        for nth in range(1, 8):
            served.models.requests.clear()
            served.models.fail_from(nth, [web.Response(status=400) for _ in range(20)])
            client.add_turns(name, [turn("t2", "no longer", "s2")])
            assert client.flush(name, timeout_s=60).done
            failed = list(client.list_turns(name))[1].state is TurnState.FAILED
            served.models.faults.clear()
            served.models.skip = 0
            if not failed:
                break
            assert texts(client, name) == {"anna -- smokes -- a_pipe"}
        assert nth == 6, "three chats, and each of two names embedded once"
        assert texts(client, name) == {"anna -- sings -- a_song"}


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("likes_tea,_not_milk", "likes_tea_not_milk"),
        ("2_times_a.week", "_2_times_a_week"),
        ("любит", "любит"),
        ("-", "_"),
    ],
)
def test_a_relation_is_a_word_to_neo4j(adapter: Adapter, said: str, word: str) -> None:
    script = "import sys; from memdock_mem0g.stores import relation_type; print(relation_type(sys.argv[1]))"
    assert run(adapter, "python", "-c", script, said).stdout.strip() == word


def test_what_cannot_be_opened_is_told_in_a_sentence(served: RunningAdapter, tmp_path: Path) -> None:
    models = [
        "--chat-url",
        "http://h/v1",
        "--chat-model",
        "m",
        "--embedder-url",
        "http://h/v1",
        "--embedder-model",
        "e",
    ]
    neo4j = ["--data", str(tmp_path), "--neo4j-url", "bolt://127.0.0.1:1"]
    for more, said in (
        (neo4j, "--neo4j-url needs --neo4j-password"),
        ([*neo4j, "--neo4j-password", "x"], "cannot be opened (ValueError: Could not connect to Neo4j"),
        (["--data", str(served.folder)], f"cannot serve: The folder {served.folder} is in use by process"),
    ):
        refused = run(served.adapter, "memdock-mem0g", "serve", *models, "--embedder-dimension", "64", *more)
        assert refused.returncode != 0
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr


def run(adapter: Adapter, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(environment(adapter.name) / program), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
