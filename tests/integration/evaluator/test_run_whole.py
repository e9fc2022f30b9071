"""A whole run against a served toy: what is stored, asked, shown and written, and that it is the same every time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memdock.types import Feature, Limits, Memory
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.results.manifest import Coverage, Manifest
from memdock_evaluator.results.rows import Outcome, Row, Stage, Timing
from memdock_evaluator.run.settings import DataSource, IngestUnit, RunSettings, SettingsError
from support.evaluation import (
    NO_SUCH,
    QUESTIONS,
    Recorder,
    question,
    ran,
    row_of,
    rows,
    served_url,
    session,
    settings,
    write_data,
)
from support.model_server import ModelServer, serve_models
from support.toys import ToySystem, without


async def test_a_run_from_turns_to_files(tmp_path: Path) -> None:
    data, out, toy = write_data(tmp_path / "d.jsonl", languages=("en", "ru")), tmp_path / "run", Recorder()
    async with served_url(toy, tmp_path / "toy") as url:
        end, said = await ran(settings(data, out, url=url, systems=("toy",)))
    assert end.complete, said
    manifest = Manifest.from_json((out / "manifest.json").read_bytes(), place="x")
    assert manifest == end.manifest
    assert manifest.finished is not None
    assert manifest.totals["toy"].coverage == Coverage(expected=16, answered=16, scored=16)
    ingest = manifest.totals["toy"].ingest
    assert (ingest.turns_read, ingest.turns_listed, ingest.searchable, ingest.failed) == (32, 32, 32, 0)
    assert ingest.requests == 16
    usage = {(each.model, each.purpose): each.calls for each in manifest.totals["toy"].usage}
    assert usage == {("toy-model", "extraction"): 32, ("toy-model", "search"): 16}
    found = rows(out)
    assert [row.key for row in found] == sorted(row.key for row in found)
    assert len(found) == 16
    row = row_of(out, "q0", dialogue_id="0", language="en")
    assert row.outcome is Outcome.ANSWERED
    assert row.answer == "My cat is called Bublik"
    assert (row.recall_turns, row.mrr_turns, row.recall_sessions) == (1.0, 1.0, 1.0)
    assert row.memories[0].sources[0].turn_id == "s1-t0"
    assert row.memories[0].time == "2024-03-04T20:15:00+00:00"
    assert row_of(out, "q2", dialogue_id="1", language="ru").recall_turns is None


async def test_each_dialogue_is_stored_once_in_a_space_of_its_own_and_given_back(tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl", languages=("en", "ru")), Recorder()
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), concurrency=3))
        assert toy.kept == {}
    assert len(toy.turns) == 4, "a space a dialogue and language"
    ids = [f"s1-t{n}" for n in range(4)] + ["s2-t0", "s2-t1", "s3-t0", "s3-t1"]
    assert all([turn.turn_id for turn in turns] == ids for turns in toy.turns.values()), "in order, each once"
    spaces = {f"eval-{end.manifest.run_id}-{dialogue}-{language}" for dialogue in "01" for language in ("en", "ru")}
    assert set(toy.turns) == spaces
    assert {space for space, _ in toy.queries} == spaces
    assert end.manifest.totals["toy"].spaces_not_reset == ()


async def test_turns_keep_the_time_at_which_they_were_said(tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",)), Recorder()
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), zone="Europe/Moscow"))
    (turns,) = toy.turns.values()
    assert [f"{turn.time:%m-%d %H:%M}" for turn in turns[:6]] == ["03-04 17:15"] * 4 + ["03-11 06:00"] * 2
    assert {turn.time_zone for turn in turns} == {"Europe/Moscow"}
    assert {turn.session_id for turn in turns} == {"s1", "s2", "s3"}


async def test_a_system_that_reads_no_zones_gets_none(tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",)), Recorder(features=without(Feature.TIME_ZONES))
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), zone="Europe/Moscow"))
    assert {turn.time_zone for turns in toy.turns.values() for turn in turns} == {""}


async def test_two_runs_give_the_same_bytes_whatever_the_order(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=[str(n) for n in range(5)])
    for name, concurrency in (("a", 1), ("b", 5)):
        async with served_url(ToySystem(), tmp_path / f"toy-{name}") as url:
            run = settings(
                data,
                tmp_path / name,
                url=url,
                systems=("toy",),
                baselines=("oracle", "refusal"),
                concurrency=concurrency,
                parallel_questions=concurrency,
            )
            assert (await ran(run))[0].complete
    assert (tmp_path / "a/outcomes.jsonl").read_bytes() == (tmp_path / "b/outcomes.jsonl").read_bytes()
    assert len(rows(tmp_path / "a")) == 60, "every dialogue, not the first alone"


async def test_no_row_holds_what_differs_from_run_to_run(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        end, _ = await ran(settings(data, out, url=url, systems=("toy",)))
    content = (out / "outcomes.jsonl").read_text()
    assert end.manifest.run_id not in content
    assert "memory_id" not in content


async def test_the_answer_model_never_sees_answer_category_or_evidence(tmp_path: Path) -> None:
    marked = [
        question(
            "q0",
            "What is my cat called",
            "gold-answer-xyzzy",
            date="2024-06-01T10:00:00",
            evidence_turns=["s1-t0"],
            tags={"semantic": "category-xyzzy"},
        )
    ]
    data, toy = write_data(tmp_path / "d.jsonl", questions=marked), Recorder()
    async with serve_models(ModelServer(chat=lambda body: "Bublik")) as server, served_url(toy, tmp_path / "t") as url:
        endpoint = ModelEndpoint(purpose="answer", url=server.url, model="m")
        answerer = ModelSettings(endpoint=endpoint)
        await ran(
            settings(
                data,
                tmp_path / "run",
                url=url,
                systems=("toy",),
                baselines=("full-context", "oracle", "closed-book"),
                answerer=answerer,
            )
        )
    assert len(server.requests) == 8
    assert all("xyzzy" not in str(body) and "s1-t0" not in str(body) for _, body in server.requests)
    assert all("Saturday, 1 June 2024" in str(body) for _, body in server.requests)
    assert "xyzzy" not in str(toy.turns) + str(toy.queries), "nor does the memory system"


async def test_every_system_meets_the_same_prompts_for_answer_and_verdict(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",))
    seen = []
    for name in ("mine", "theirs"):
        async with (
            serve_models(ModelServer(chat=lambda body: '{"verdict": 2}')) as server,
            served_url(ToySystem(name=name), tmp_path / name) as url,
        ):
            answerer = ModelSettings(endpoint=ModelEndpoint(purpose="answer", url=server.url, model="a"))
            judge = ModelSettings(endpoint=ModelEndpoint(purpose="judge", url=server.url, model="j"))
            run = settings(data, tmp_path / f"run-{name}", url=url, systems=(name,), answerer=answerer, judge=judge)
            await ran(run)
            seen.append(sorted(str(body) for _, body in server.requests))
    assert len(seen[0]) == 8
    assert seen[0] == seen[1]


async def test_answers_go_to_their_questions_in_whatever_order_they_come(tmp_path: Path) -> None:
    asked = [question(f"q{n}", f"Question number {n}", str(n)) for n in range(12)]
    data, out = write_data(tmp_path / "d.jsonl", questions=asked), tmp_path / "run"

    def number(body: dict[str, Any]) -> str:
        server.latency_s = 0.03 * (len(server.requests) % 3)
        return str(body["messages"][0]["content"]).split("Question number ")[1].split()[0]

    async with serve_models(ModelServer(chat=number)) as server:
        answerer = ModelSettings(endpoint=ModelEndpoint(purpose="answer", url=server.url, model="m"))
        await ran(settings(data, out, baselines=("closed-book",), answerer=answerer, parallel_questions=6))
    assert [(row.question_id, row.answer, row.correct) for row in rows(out)] == [
        (row.question_id, row.question_id[1:], True) for row in rows(out)
    ]
    assert len(rows(out)) == 24


async def test_k_holds_for_every_system_and_the_reference_time_is_off_by_default(tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",)), Recorder()
    toy.alter = lambda memories: memories * 5
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(settings(data, tmp_path / "a", url=url, systems=("toy",), ks=(2,)))
        assert {(query.top_k, query.reference_time) for _, query in toy.queries} == {(2, None)}
        toy.queries.clear()
        toy.alter = lambda memories: memories
        await ran(settings(data, tmp_path / "b", url=url, systems=("toy",), reference_time=True))
        assert {f"{query.reference_time:%Y-%m-%d}" for _, query in toy.queries} == {"2024-06-01", "2024-04-01"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"reference_time": True}, "toy takes no reference time .* leave out --reference-time, or that system"),
        ({"ks": (5, 500)}, "toy gives at most 100 memories: --k 500 is more"),
    ],
)
async def test_what_a_system_cannot_do_is_refused_before_the_run(
    tmp_path: Path, fields: Mapping[str, Any], sentence: str
) -> None:
    data, toy = write_data(tmp_path / "d.jsonl"), ToySystem(features=without(Feature.REFERENCE_TIME))
    async with served_url(toy, tmp_path / "toy") as url:
        with pytest.raises(SettingsError, match=sentence):
            await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), **fields))
    assert not (tmp_path / "run/manifest.json").exists()


async def test_memories_without_sources_are_not_scored(tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",)), ToySystem(features=without(Feature.SOURCES))
    toy.alter = lambda memories: [Memory(memory_id=memory.memory_id, text=memory.text) for memory in memories]
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(settings(data, tmp_path / "run", url=url, systems=("toy",)))
    assert {row.recall_turns for row in rows(tmp_path / "run")} == {None}


async def test_an_empty_context_is_right_where_there_is_no_answer(tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",)), ToySystem()
    toy.alter = lambda memories: []
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(settings(data, tmp_path / "run", url=url, systems=("toy",)))
    abstention, cat = row_of(tmp_path / "run", "q2"), row_of(tmp_path / "run", "q0")
    assert (abstention.outcome, abstention.answer, abstention.abstained) == (Outcome.ANSWERED, NO_SUCH, True)
    assert (abstention.verdict, abstention.correct) == (2, True)
    assert (cat.correct, cat.recall_turns, cat.mrr_turns) == (False, 0.0, 0.0)


async def test_asking_each_question_when_only_what_had_been_said_is_stored(tmp_path: Path) -> None:
    asked = [
        question("late", "Where did my sister Olga move", "Perm", date="2024-06-01T10:00:00", evidence_turns=["s3-t0"]),
        question("early", "Where did my sister Olga move", NO_SUCH, date="2024-03-20T10:00:00"),
        question("undated", "Where did my sister Olga move", "Perm"),
        question("before", "Where did my sister Olga move", NO_SUCH, date="2024-01-01T10:00:00"),
    ]
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",), questions=asked), tmp_path / "run"
    async with served_url(Recorder(), tmp_path / "toy") as url:
        end, _ = await ran(
            settings(data, out, url=url, systems=("toy",), baselines=("full-context",), as_of=True, repeats=2)
        )
    assert end.complete
    for system in ("toy", "baseline:full-context"):
        for repeat in (0, 1):
            found = {name: row_of(out, name, system=system, repeat=repeat) for name in ("late", "early", "undated")}
            assert [found[name].abstained for name in ("late", "early", "undated")] == [False, True, False]
            assert row_of(out, "before", system=system, repeat=repeat).abstained
    assert len(row_of(out, "before", system="toy", repeat=0).memories) == 0
    assert end.manifest.totals["toy"].ingest.turns_read == 8, "nothing twice"


async def test_baselines(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    names = ("full-context", "oracle", "closed-book", "refusal")
    async with serve_models(ModelServer(chat=lambda body: "Bublik")) as server:
        endpoint = ModelEndpoint(purpose="answer", url=server.url, model="m", concurrency=1)
        run = settings(data, out, baselines=names, answerer=ModelSettings(endpoint=endpoint), concurrency=1)
        assert (await ran(run))[0].complete
    prompts = [body["messages"][0]["content"] for _, body in server.requests]
    assert len(prompts) == 12, "the refusal asks no model"
    assert len({prompt.partition("Question:")[0].partition("Today")[0] for prompt in prompts[:4]}) == 1, "cacheable"
    assert all("user: My cat is called Bublik\nassistant: What a fine name" in prompt for prompt in prompts[:4])
    oracle = row_of(out, "q0", system="baseline:oracle")
    assert [memory.text for memory in oracle.memories] == ["user: My cat is called Bublik\nassistant: What a fine name"]
    assert "Perm" in row_of(out, "q1", system="baseline:oracle").memories[0].text, "sessions where no turn is known"
    full = row_of(out, "q0", system="baseline:full-context")
    assert (full.memories, full.recall_turns) == ((), None)
    assert full.context_tokens > oracle.context_tokens > 0
    assert row_of(out, "q0", system="baseline:closed-book").context_tokens == 0
    assert "(no notes)" in prompts[-1]
    refusal = row_of(out, "q0", system="baseline:refusal")
    assert (refusal.answer, refusal.correct, refusal.answer_input_tokens) == (NO_SUCH, False, 0)
    assert row_of(out, "q2", system="baseline:refusal").correct


async def test_repeats_differ_by_seed_and_share_the_ingest(tmp_path: Path) -> None:
    data, out, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run", Recorder()
    async with serve_models(ModelServer(chat=lambda body: str(body["seed"]))) as server:
        answerer = ModelSettings(endpoint=ModelEndpoint(purpose="answer", url=server.url, model="m"))
        async with served_url(toy, tmp_path / "toy") as url:
            await ran(settings(data, out, url=url, systems=("toy",), repeats=3, seed=40, answerer=answerer))
    assert [row.answer for row in rows(out)] == ["40", "41", "42"] * len(QUESTIONS)
    assert [len(turns) for turns in toy.turns.values()] == [8]


@pytest.mark.parametrize(("unit", "requests"), [("pair", 4), ("turn", 8), ("session", 3), ("batch:5", 2)])
async def test_the_ingest_unit_decides_the_requests(tmp_path: Path, unit: str, requests: int) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        end, _ = await ran(settings(data, out, url=url, systems=("toy",), ingest_unit=IngestUnit(name=unit)))
    assert end.manifest.totals["toy"].ingest.requests == requests
    assert end.manifest.plan.ingest_units == (unit,)
    adds = [timing for timing in timings(out) if timing.stage is Stage.ADD and not timing.inner]
    assert len(adds) == requests


async def test_a_session_past_the_systems_limits_is_sent_in_parts(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(ToySystem(limits=Limits(max_turns_per_request=3)), tmp_path / "toy") as url:
        end, _ = await ran(settings(data, out, url=url, systems=("toy",), ingest_unit=IngestUnit(name="session")))
    assert end.manifest.totals["toy"].ingest.requests == 4
    assert end.manifest.totals["toy"].ingest.searchable == 8


async def test_timings_of_every_stage_and_of_the_systems_own(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(settings(data, out, url=url, systems=("toy",)))
    found = timings(out)
    assert {timing.stage for timing in found if not timing.inner} == set(Stage)
    assert any(timing.inner for timing in found if timing.stage is Stage.RETRIEVE)
    assert all(timing.ms >= 0 for timing in found)
    assert [timing.key for timing in found] == sorted(timing.key for timing in found)


async def test_a_dialogue_without_questions_is_not_stored(tmp_path: Path) -> None:
    with_questions, without_any = write_data(tmp_path / "a.jsonl", dialogues=("0",)), tmp_path / "b.jsonl"
    write_data(without_any, dialogues=("1",), questions=[])
    run = settings(with_questions, tmp_path / "run", systems=("toy",))
    toy = Recorder()
    async with served_url(toy, tmp_path / "toy") as url:
        sources = (DataSource(path=str(with_questions)), DataSource(path=str(without_any)))
        end, _ = await ran(RunSettings(data=sources, out=run.out, url=url, systems=("toy",)))
    assert end.complete
    assert len(toy.turns) == 1


async def test_languages_and_dialogues_select(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=("0", "1", "2"), languages=("en", "ru"))
    run = settings(data, tmp_path / "run", baselines=("refusal",), languages=("ru",), dialogues=("2", "0"))
    end, _ = await ran(run)
    assert {(row.language, row.dialogue_id) for row in rows(tmp_path / "run")} == {("ru", "0"), ("ru", "2")}
    assert end.manifest.plan.data.languages["ru"].questions == 8


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"languages": ("de",)}, "no dialogue in 'de'"),
        ({"dialogues": ("7",)}, "no dialogue '7'"),
        ({"baselines": ("oracel",)}, "no baseline 'oracel': name one of full-context"),
        ({"baselines": ()}, "name a --system or a --baseline"),
        ({"systems": ("toy",)}, "give --url"),
        ({"systems": ("toy",), "url": "ftp://x"}, "must be grpc://host:port"),
    ],
)
async def test_a_run_that_cannot_be_meant_is_refused(tmp_path: Path, fields: Mapping[str, Any], sentence: str) -> None:
    data = write_data(tmp_path / "d.jsonl")
    with pytest.raises(SettingsError, match=sentence):
        await ran(settings(data, tmp_path / "run", **{"baselines": ("refusal",), **fields}))


async def test_a_dialogue_that_stands_in_two_files_is_refused(tmp_path: Path) -> None:
    source = DataSource(path=str(write_data(tmp_path / "d.jsonl")))
    run = RunSettings(data=(source, source), out=str(tmp_path / "run"), baselines=("refusal",))
    with pytest.raises(SettingsError, match="dialogue 0 in en stands in two of the files"):
        await ran(run)


async def test_results_at_another_address_than_a_disk(tmp_path: Path) -> None:
    import fsspec

    data = write_data(tmp_path / "d.jsonl")
    address = f"memory://{tmp_path.name}/run"
    run = RunSettings(data=(DataSource(path=str(data)),), out=address, baselines=("oracle",))
    assert (await ran(run))[0].complete
    lines = fsspec.filesystem("memory").cat_file(f"/{tmp_path.name}/run/outcomes.jsonl").splitlines()
    assert len([Row.from_json(line) for line in lines]) == 8
    assert (await ran(run))[1].startswith(f"the run in {address} is finished already")


async def test_sessions_of_odd_length_keep_their_pairs(tmp_path: Path) -> None:
    odd = [session("2024-03-04T20:15:00", "one", "two", "three"), session("2024-03-05T20:15:00", "four", "five")]
    data, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",), sessions=odd), Recorder()
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(settings(data, tmp_path / "run", url=url, systems=("toy",)))
    assert next(ids for ids in toy.calls("add") if ids) == ("s1-t0", "s1-t1")
    (turns,) = toy.turns.values()
    assert [turn.text for turn in turns] == ["one", "two", "three", "four", "five"]


def timings(out: Path) -> list[Timing]:
    return [Timing.from_json(line) for line in (out / "timings.jsonl").read_bytes().splitlines()]
