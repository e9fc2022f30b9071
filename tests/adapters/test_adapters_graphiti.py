"""What only graphiti does: facts that end, facts of several turns, summaries, and what its prompts must not hold."""

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memdock.types import Component, TurnState
from support.adapters import GRAPHITI, SAID, Adapter, RunningAdapter, environment, fill, graphiti_chat, space, turn
from support.processes import clean_environment, free_port

LATER = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    if GRAPHITI.name not in os.environ.get("ADAPTERS", GRAPHITI.name).split():
        pytest.skip("the variable ADAPTERS leaves it out")
    return GRAPHITI


def but(kind: str, reply: Any) -> Callable[[dict[str, Any]], str]:
    """The usual answers, but this one to prompts of a kind."""

    def chat(body: dict[str, Any]) -> str:
        asked = body["response_format"]["json_schema"]["name"]
        return json.dumps(reply) if asked == kind else graphiti_chat(body)

    return chat


def test_a_fact_that_has_ended_is_not_found_until_what_ended_it_is_forgotten(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon lives in Kazan"))
        served.models.chat = but("EdgeDuplicate", {"duplicate_facts": [], "contradicted_facts": [0]})
        try:
            fill(client, name, turn("t2", "persimmon lives in Omsk", time=LATER))
        finally:
            served.models.chat = graphiti_chat
        (found,) = client.retrieve(name, "persimmon lives").memories
        assert (found.text, found.valid_from, found.valid_to) == ("persimmon lives in Omsk", LATER, None)
        times = {each.text: (each.valid_from, each.valid_to) for each in client.list_memories(name)}
        assert times["persimmon lives in Kazan"] == (SAID, LATER)
        client.forget(name, turn_ids=["t2"])
        (found,) = client.retrieve(name, "persimmon lives").memories
        assert (found.text, found.valid_from, found.valid_to) == ("persimmon lives in Kazan", SAID, None)


def test_a_fact_of_two_turns_stays_until_both_are_forgotten(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"), turn("t2", "persimmon is my cat", "s2", LATER))
        (found,) = client.retrieve(name, "persimmon").memories
        assert [each.turn_id for each in found.sources] == ["t1", "t2"]
        forgotten = client.forget(name, turn_ids=["t1"])
        assert forgotten.erased_memory_ids == ()
        (graph,) = [each for each in forgotten.residual if each.component is Component.GRAPH]
        assert (graph.items, graph.verified) == (1, True)
        assert "other turns" in graph.note
        (found,) = client.retrieve(name, "persimmon").memories
        assert [each.turn_id for each in found.sources] == ["t2"]
        assert found.time == LATER
        assert client.forget(name, turn_ids=["t2"]).erased_memory_ids == (found.memory_id,)
        assert client.retrieve(name, "persimmon").memories == ()


def test_nothing_forgotten_is_left_in_the_graph(served: RunningAdapter) -> None:
    """Looked up in the database itself: entities' names and summaries, facts, raw texts."""
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "medlar is in my garden"), turn("t2", "loquat is in my garden", "s2"))
        graph = client.forget(name, turn_ids=["t1"]).residual[0]
        assert (graph.component, graph.items, graph.verified) == (Component.GRAPH, 0, True)
    served.process.stop()
    try:
        rows = _rows(served, name)
    finally:
        served.process.start()
    assert "loquat is in my garden" in rows
    assert "medlar" not in rows


def _rows(served: RunningAdapter, name: str) -> str:
    script = (
        "import sys, kuzu; c = kuzu.Connection(kuzu.Database(sys.argv[1], read_only=True))\n"
        "for words in ('Entity.name Entity.summary Episodic.content RelatesToNode_.fact').split():\n"
        "    table, field = words.split('.')\n"
        "    found = c.execute(f'MATCH (n:{table}) WHERE n.group_id = $g RETURN n.{field}', {'g': sys.argv[2]})\n"
        "    print(words, found.get_all())\n"
    )
    command = [str(environment("graphiti") / "python"), "-c", script, str(served.folder / "graph.kuzu"), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_json_without_the_fields_asked_for_fails_the_turn(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        served.models.chat = but("ExtractedEdges", {"memory": []})
        try:
            client.add_turns(name, [turn("t1", "persimmon is my cat")])
            assert client.flush(name, timeout_s=60).done
        finally:
            served.models.chat = graphiti_chat
        (record,) = client.list_turns(name)
        assert record.state is TurnState.FAILED
        assert record.error is not None
        assert record.error.reason == "PROVIDER_PROTOCOL_ERROR"


def test_a_prompt_holds_what_was_said_before_and_the_message_once(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        served.models.requests.clear()
        fill(client, name, turn("t2", "quince is my dog"))
    prompts = [body["messages"][-1]["content"] for kind, body in served.models.requests if kind == "chat"]
    extraction = next(prompt for prompt in prompts if "<ENTITY TYPES>" in prompt)
    assert extraction.count("quince is my dog") == 1
    assert extraction.count("persimmon is my cat") == 1


def test_the_model_is_told_that_a_time_is_not_known(served: RunningAdapter) -> None:
    with served.client() as client:
        fill(client, space(), turn("t1", "yesterday I bought a quince", time=None))
    prompts = [body["messages"][-1]["content"] for kind, body in served.models.requests if kind == "chat"]
    assert sum("It is not known when this was said" in prompt for prompt in prompts) == 2


def test_two_databases_are_refused(served: RunningAdapter) -> None:
    done = _refused(served, "--neo4j-url", "bolt://localhost", "--falkordb-url", "redis://localhost")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


def test_a_database_that_cannot_be_opened_is_told_in_a_sentence(served: RunningAdapter) -> None:
    away = _refused(served, "--falkordb-url", f"redis://user:secret@127.0.0.1:{free_port()}")
    taken = _refused(served, "--data", str(served.folder))
    for done, said in ((away, "(falkordb) cannot be opened"), (taken, "is in use by process")):
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr
        assert "secret" not in done.stderr


def _refused(served: RunningAdapter, *flags: str) -> "subprocess.CompletedProcess[str]":
    models = ["--chat-url", "http://h/v1", "--chat-model", "m", "--embedder-url", "http://h/v1"]
    models += ["--embedder-model", "e", "--embedder-dimension", "64", "--data", str(served.folder.parent / "other")]
    command = [str(environment("graphiti") / "memdock-graphiti"), "serve", *models, *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
