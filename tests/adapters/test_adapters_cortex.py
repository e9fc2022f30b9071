"""What cortex would swallow, mix up or keep, and the adapter does not."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web

from memdock import Client
from memdock.types import TurnState
from support.adapters import CORTEX, Adapter, RunningAdapter, cortex_chat, environment, fill, running, space, turn
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import run_command
from support.words import embed_words


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    if CORTEX.name not in os.environ.get("ADAPTERS", CORTEX.name).split():
        pytest.skip("the variable ADAPTERS leaves it out")
    return CORTEX


@pytest.fixture(autouse=True)
def _usual_words(models: ModelServer) -> Iterator[None]:
    usual = models.chat, models.embed
    yield
    models.chat, models.embed = usual
    models.skip = 0


def evolve(models: ModelServer, **decided: Any) -> None:
    """From now on the model decides that about a note and its neighbours."""

    def chat(body: dict[str, Any]) -> str:
        usual = json.loads(cortex_chat(body))
        return json.dumps({**usual, "should_evolve": True, **decided} if "should_evolve" in usual else usual)

    models.chat = chat


def link(note_id: str, reason: str) -> dict[str, Any]:
    connection = {"id": note_id, "type": "supports", "strength": 0.9, "reason": reason}
    return {"actions": ["strengthen"], "suggested_connections": [connection], "tags_to_update": [reason]}


def merge(note_id: str, strategy: str = "augment") -> dict[str, Any]:
    candidate = {"id": note_id, "merge_strategy": strategy, "reasoning": "the same matter"}
    return {"actions": ["merge_memories"], "merge_candidates": [candidate]}


def only_id(client: Client, name: str) -> str:
    (memory,) = client.list_memories(name)
    return memory.memory_id


def notes(client: Client, name: str) -> dict[str, str]:
    """The text of each memory by the turns that it came from."""
    return {" ".join(source.turn_id for source in each.sources): each.text for each in client.list_memories(name)}


def failure(client: Client, name: str) -> tuple[str, str]:
    """Adds the turn t2, which fails: the reason and the message."""
    client.add_turns(name, [turn("t2", "quince is my dog", "s2")])
    assert client.flush(name, timeout_s=60).done
    (*_, record) = client.list_turns(name)
    assert record.state is TurnState.FAILED
    assert record.error is not None
    return record.error.reason, record.error.message


def test_a_merge_tells_both_turns_and_is_undone_with_the_one_that_is_forgotten(served: RunningAdapter) -> None:
    word = f"quince{uuid4().hex}"
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        evolve(served.models, **merge(only_id(client, name)))
        fill(client, name, turn("t2", f"{word} is my dog", "s2"))
        merged = notes(client, name)
        assert set(merged) == {"t1 t2", "t2"}
        assert "persimmon" in merged["t1 t2"]
        assert word in merged["t1 t2"]
        (gone,) = client.forget(name, turn_ids=["t2"]).erased_memory_ids
        assert notes(client, name) == {"t1": "user: persimmon is my cat"}
        assert gone != only_id(client, name)
        assert served.places_of([word]) == []
        (found,) = client.retrieve(name, "persimmon is my cat").memories
        assert found.score == pytest.approx(embedded_alike("persimmon is my cat", "user: persimmon is my cat"))


def embedded_alike(one: str, other: str) -> float:
    """The cosine of both vectors."""
    a, b = embed_words(one), embed_words(other)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return float(dot / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5)


def test_forgetting_a_merged_memory_takes_all_turns_that_it_was_made_from(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        first = only_id(client, name)
        evolve(served.models, **merge(first, "replace"))
        fill(client, name, turn("t2", "quince is my dog", "s2"))
        served.models.chat = cortex_chat
        fill(client, name, turn("t3", "medlar is my bird", "s3"))
        assert set(client.forget(name, memory_ids=[first]).erased_turn_ids) == {"t1", "t2"}
        assert notes(client, name) == {"t3": "user: medlar is my bird"}


def test_what_a_model_said_of_two_turns_goes_with_either(served: RunningAdapter) -> None:
    """A link stands at both notes, with a reason in the words of both; tags may hold them, too."""
    for forgotten, kept in (("t1", "t2"), ("t2", "t1")):
        reason = f"reason{uuid4().hex}"
        with served.client() as client:
            name = space()
            fill(client, name, turn("t1", "persimmon is my cat"))
            evolve(served.models, **link(only_id(client, name), reason))
            fill(client, name, turn("t2", "quince is my dog", "s2"))
            served.models.chat = cortex_chat
            assert served.places_of([reason])
            client.forget(name, turn_ids=[forgotten])
            assert set(notes(client, name)) == {kept}
            assert served.places_of([reason]) == []


def test_it_does_after_a_restart_what_it_did_before(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        first = only_id(client, name)
    served.process.stop()
    served.process.start()
    with served.client() as client:
        evolve(served.models, **merge(first))
        fill(client, name, turn("t2", "quince is my dog", "s2"))
        assert set(notes(client, name)) == {"t1 t2", "t2"}


def test_an_add_that_fails_leaves_its_neighbours_as_they_were(served: RunningAdapter) -> None:
    """Three embeddings and two chats of the new note; the last embedding is that of the merged text."""
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        evolve(served.models, **merge(only_id(client, name)))
        served.models.fail_from(6, [web.Response(status=400)])
        assert failure(client, name)[0] == "PROVIDER_PROTOCOL_ERROR"
        assert not served.models.faults, "the sixth request was asked"
        assert notes(client, name) == {"t1": "user: persimmon is my cat"}
        client.add_turns(name, [turn("t2", "quince is my dog", "s2")])
        assert client.flush(name, timeout_s=60).failed == ()
        assert set(notes(client, name)) == {"t1 t2", "t2"}


@pytest.mark.parametrize(
    "decided",
    [{"actions": "merge_memories"}, {"merge_candidates": [{"id": 7}]}, {"should_evolve": "yes"}],
    ids=["text", "number", "word"],
)
def test_json_of_another_shape_is_a_failure_and_no_decision(served: RunningAdapter, decided: dict[str, Any]) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        evolve(served.models, **decided)
        assert failure(client, name)[0] == "PROVIDER_PROTOCOL_ERROR"
        assert set(notes(client, name)) == {"t1"}


def test_json_in_a_fence_is_taken(served: RunningAdapter) -> None:
    served.models.chat = lambda body: f"Here it is:\n```json\n{cortex_chat(body)}\n```"
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"), turn("t2", "quince is my dog", "s2"))
        assert set(notes(client, name)) == {"t1", "t2"}


def test_vectors_of_another_length_are_told(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        served.models.embed = lambda text: [1.0, 2.0]
        reason, message = failure(client, name)
        assert reason == "PROVIDER_PROTOCOL_ERROR"
        assert "--embedder-dimension" in message


def test_chat_and_embedder_may_stand_at_two_addresses(adapter: Adapter, models: ModelServer, tmp_path: Path) -> None:
    with models_in_thread(ModelServer(embed=embed_words)) as embedder:
        flags = {"--embedder-url": embedder.url, "--embedder-model": "all-MiniLM-L6-v2"}
        with running(adapter, tmp_path, models, flags=flags) as started, started.client() as client:
            fill(client, "one", turn("t1", "persimmon is my cat"))
            assert client.retrieve("one", "persimmon").memories
        assert {kind for kind, _ in models.requests} == {"chat"}
        assert {(kind, body["model"]) for kind, body in embedder.requests} == {("embeddings", "all-MiniLM-L6-v2")}


STORE = """
import sys
from pathlib import Path
import numpy as np
from memdock_cortex.store import Note, Store

folder = Path(sys.argv[1])
store = Store(folder)

def vector(number):  # the digits of a number in base two, as signs
    return [1.0 if number >> place & 1 else -1.0 for place in range(32)]

def note(number):
    fields = {"user_id": "one", "doc_id": str(number)}
    return Note(note_id=str(number), text=f"note {number}", fields=fields, vector=vector(number))

def in_files(number):  # as it was given, and of length one, as an index keeps it
    unit = np.float32(32 ** -0.5)
    lengths = (np.float32(1), unit, np.nextafter(unit, np.float32(0)), np.nextafter(unit, np.float32(1)))
    wanted = [(np.array(vector(number), dtype=np.float32) * length).tobytes() for length in lengths]
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return any(each in content for content in files for each in wanted)
"""


def in_environment(script: str, folder: Path) -> str:
    """Runs a script on the adapter's store; what it printed."""
    command = [str(environment("cortex") / "python"), "-c", STORE + script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_vectors_of_what_is_forgotten_are_in_no_index(adapter: Adapter, tmp_path: Path) -> None:
    script = """
for start in range(0, 1500, 250):
    store.write("one", [note(number) for number in range(start, start + 250)])
assert [path for path in folder.rglob("data_level0.bin")], "chroma keeps an index"
print(in_files(654), store.erase("one", ["654"]), in_files(654), in_files(655), store.count("one"))
"""
    assert in_environment(script, tmp_path) == "True (0, 0) False True 1499\n"
    again = 'print(store.count("one"), store.notes("one", ["653"])[0].text, store.notes("one", ["654"]))'
    assert in_environment(again, tmp_path) == "1499 note 653 []\n"


def test_a_kill_while_a_collection_is_written_anew_loses_nothing(adapter: Adapter, tmp_path: Path) -> None:
    """Killed before the old one is deleted, and after."""
    script = """
store.write("one", [note(1), note(2)])
new = store._create("memories_one.new")
new.add(ids=["1"], documents=["note 1"], embeddings=[vector(1)], metadatas=[{"user_id": "one"}])
"""
    in_environment(script, tmp_path)
    left = 'print(sorted(each.note_id for each in store.notes("one")), len(store._client.list_collections()))'
    assert in_environment(left, tmp_path) == "['1', '2'] 1\n"
    in_environment('store._collection("one").modify(name="memories_one.new")', tmp_path)
    assert in_environment(left, tmp_path) == "['1', '2'] 1\n"


def test_a_damaged_file_is_told_in_a_sentence(adapter: Adapter, tmp_path: Path) -> None:
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"no database" * 1000)
    words = ["serve", "--data", str(tmp_path), "--chat-url", "http://h/v1", "--chat-model", "m"]
    words += ["--embedder-url", "http://h/v1", "--embedder-model", "e", "--embedder-dimension", "64"]
    refused = run_command(str(environment("cortex") / "memdock-cortex"), *words)
    assert refused.code != 0
    assert "cannot serve: the notes in" in refused.errors
    assert "Traceback" not in refused.errors
