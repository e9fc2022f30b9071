"""Where answers went wrong in one run: what the system lists, what the oracle could not answer, what people say."""

import asyncio
import csv
import io
from pathlib import Path
from typing import Any

import orjson
import pytest

from memdock.errors import error
from memdock.types import Feature, Memory
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.attribution import Attributed, attribute
from memdock_evaluator.judging.sheet import items
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.run import ingest
from memdock_evaluator.summary.source import read_run
from support.evaluation import question, ran, row_of, rows, served_url, session, settings, write_data
from support.model_server import ModelServer, serve_models
from support.suites import invoke
from support.toys import ToySystem, without

SESSIONS = [
    session("2024-03-04T20:15:00", "My cat is called Bublik", "What a fine name", "He is ginger", "Gingers are bold"),
    session("2024-03-11T09:00:00", "Yesterday I bought a green bicycle", "Enjoy the ride"),
    session("2024-05-06T18:30:00", "My sister Olga moved to Perm", "Is it far"),
]
QUESTIONS = [
    question("lost", "What is my cat called", "Bublik", evidence_turns=["s1-t0"]),
    question("lost-session", "Where did my sister Olga move", "Perm", evidence_sessions=[3]),
    question("hidden", "What colour is my bicycle", "green", evidence_turns=["s2-t0"]),
    question("unused", "He is of which colour", "ginger", evidence_turns=["s1-t2"]),
    question("beyond", "He is bold or shy", "bold", evidence_turns=["s1-t2"]),
    question("misjudged", "He is what", "ginger", evidence_turns=["s1-t2"]),
    question("none", "Which instrument does grandfather play", abstention=True),
]
LOST = {"s1-t0", "s3-t0", "s3-t1"}


class Loses(ToySystem):
    """Says of every turn that it is searchable, and has lost some; one more it never finds."""

    def _without(self, memories: Any, lost: set[str]) -> list[Memory]:
        return [memory for memory in memories if not lost & {source.turn_id for source in memory.sources}]

    async def retrieve(self, space: str, query: Any) -> Any:
        return self._without(await super().retrieve(space, query), {*LOST, "s2-t0"})

    async def list_memories(self, space: str, *, after: str, limit: int) -> Any:
        return self._without(await super().list_memories(space, after=after, limit=limit), LOST)


async def the_run(tmp_path: Path, toy: ToySystem) -> Path:
    out = tmp_path / "run"
    tmp_path.mkdir(exist_ok=True)
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",), sessions=SESSIONS, questions=QUESTIONS)
    judged = tmp_path / "judge.txt"
    judged.write_text("{question}{reference}{criterion}{scale} said: {answer}", encoding="utf-8")
    async with serve_models(ModelServer(chat=said)) as server, served_url(toy, tmp_path / "toy") as url:
        endpoints = {name: ModelEndpoint(purpose=name, url=server.url, model=name) for name in ("answer", "judge")}
        end, told = await ran(
            settings(
                data,
                out,
                url=url,
                systems=("toy",),
                baselines=("oracle",),
                answerer=ModelSettings(endpoint=endpoints["answer"]),
                judge=ModelSettings(endpoint=endpoints["judge"], prompt=str(judged)),
            )
        )
    assert end.complete, told
    return out


def said(body: dict[str, Any]) -> str:
    """The oracle, whose memories name their speakers, is answered right but for one question; nothing else is."""
    prompt = body["messages"][-1]["content"]
    if body["model"] == "answer":
        return "right" if "user: " in prompt and "bold or shy" not in prompt else "amiss"
    return orjson.dumps({"verdict": 2 if prompt.endswith("said: right") else 0}).decode()


def places(out: Path) -> dict[str, Attributed]:
    run = read_run(Folder(str(out)))
    right = {item.key for item in run.people.items if item.right} if run.people else ()
    return {each.row.question_id: each for each in attribute(run.rows, labelled_right=right)}


def label(out: Path, tmp_path: Path, right: str) -> None:
    """One person agrees with the judge but on one question, whose answer the person calls right."""
    sheet = tmp_path / "labels.csv"
    assert invoke("label", "export", out, "--n", 100, "--seed", 0, "--out", sheet).exit_code == 0
    run_id = Manifest.from_json((out / "manifest.json").read_bytes(), place="x").run_id
    of_item = items(rows(out), run_id)
    header, *lines = csv.reader(io.StringIO(sheet.read_bytes().decode("utf-8-sig"), newline=""))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    for line in lines:
        row = of_item[line[header.index("item")]]
        line[header.index("label")] = "2" if row.correct or row.question_id == right else "0"
        writer.writerow(line)
    sheet.write_text(text.getvalue(), encoding="utf-8")
    done = invoke("label", "import", out, sheet)
    assert done.exit_code == 0, done.output


async def test_every_place_is_told_apart_in_one_run(tmp_path: Path) -> None:
    out = await the_run(tmp_path, Loses())
    await asyncio.to_thread(label, out, tmp_path, "misjudged")
    found = places(out)
    assert {name: each.failure.value for name, each in found.items()} == {
        "lost": "not stored",
        "lost-session": "not stored",
        "hidden": "not retrieved",
        "unused": "retrieved and not used",
        "beyond": "beyond the evidence",
        "misjudged": "misjudged",
        "none": "no answer was due",
    }
    assert not any(each.maybe_not_stored for each in found.values())
    assert row_of(out, "lost", system="toy").unstored_evidence == ("s1-t0",)
    assert row_of(out, "lost-session", system="toy").unstored_sessions == ("s3",)
    assert row_of(out, "hidden", system="toy").storage_listed
    summary = orjson.loads((out / "summary.json").read_bytes())
    assert summary["systems"]["toy"]["languages"]["en"]["failures"]["where"]["not stored"] == 2


async def test_without_a_list_nothing_is_said_to_be_stored_or_not(tmp_path: Path) -> None:
    found = places(await the_run(tmp_path, Loses(features=without(Feature.LIST_MEMORIES))))
    not_retrieved = {name for name, each in found.items() if each.failure.value == "not retrieved"}
    assert not_retrieved == {"lost", "lost-session", "hidden"}
    assert {name for name, each in found.items() if each.maybe_not_stored} == not_retrieved


async def test_memories_are_listed_once_a_dialogue_and_a_list_that_fails_fails_nothing(tmp_path: Path) -> None:
    toy = Loses()
    out = await the_run(tmp_path, toy)
    assert len([space for kind, space, _ in toy.log if kind == "list_memories"]) == 1
    assert row_of(out, "hidden", system="toy").storage_listed

    class NoList(Loses):
        async def list_memories(self, space: str, *, after: str, limit: int) -> Any:
            raise error("INTERNAL", "the toy was told to")

    assert not row_of(await the_run(tmp_path / "none", NoList()), "hidden", system="toy").storage_listed


async def test_a_list_past_the_bound_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MOST_LISTED", 4)
    assert not row_of(await the_run(tmp_path, Loses()), "hidden", system="toy").storage_listed


async def test_a_memory_without_sources_leaves_open_what_it_was_made_from(tmp_path: Path) -> None:
    class Silent(Loses):
        async def list_memories(self, space: str, *, after: str, limit: int) -> Any:
            listed = await super().list_memories(space, after=after, limit=limit)
            return [*listed[:-1], *(Memory(memory_id=each.memory_id, text=each.text) for each in listed[-1:])]

    assert not row_of(await the_run(tmp_path, Silent()), "hidden", system="toy").storage_listed
