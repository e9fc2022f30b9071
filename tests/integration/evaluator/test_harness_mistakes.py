"""Mistakes found in public harnesses. Each check is made on the evaluator as it is, then on one that makes the mistake.

The second must fail at the same sentence, or the check would find nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from aiohttp import web

from memdock.client import AsyncClient
from memdock.errors import error
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.plan import Sample
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.summary.build import summary_of
from memdock_evaluator.summary.source import read_run
from support import harness_mistakes as mistakes
from support.evaluation import (
    QUESTIONS,
    Recorder,
    question,
    ran,
    row_of,
    rows,
    served_url,
    settings,
    write_data,
)
from support.harness_mistakes import Mistake
from support.model_server import ModelServer, serve_models
from support.toys import ToySystem

Check = Callable[[Path], Awaitable[None]]
ONE = ("0",)
TURNS = 8
"""Of each dialogue."""


async def bites(check: Check, folder: Path, mistake: Mistake, said: str) -> None:
    """The check passes, and fails with `said` on the evaluator with the mistake."""
    (folder / "right").mkdir()
    await check(folder / "right")
    (folder / "wrong").mkdir()
    with mistake, pytest.raises(AssertionError, match=said):
        await check(folder / "wrong")


async def run(folder: Path, toy: ToySystem, **fields: Any) -> Any:
    """A run of one dialogue by one toy, in `folder`/run; its end and what it said."""
    data = fields.pop("data", None) or write_data(folder / "d.jsonl", dialogues=ONE)
    async with served_url(toy, folder / "toy") as url:
        return await ran(settings(data, folder / "run", url=url, systems=(toy.info.name,), **fields))


def model(server: ModelServer, purpose: str) -> ModelSettings:
    endpoint = ModelEndpoint(purpose=purpose, url=server.url, model=purpose, tries=1, concurrency=100)
    return ModelSettings(endpoint=endpoint, verdict_tries=1)


def stored_once(toy: Recorder) -> None:
    texts = Counter(turn.text for turns in toy.turns.values() for turn in turns)
    assert set(texts.values()) == {1}, "a turn was stored more than once"
    assert len(texts) == TURNS


def added_before_each_retrieve(toy: ToySystem) -> Iterator[int]:
    """How many turns the system had taken in when it was asked, each time."""
    added: set[str] = set()
    for kind, _, ids in toy.log:
        added |= set(ids) if "add" in kind else set()
        if kind == "retrieve":
            yield len(added)


async def test_ingest_repeated_for_every_question(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        toy = Recorder()
        await run(folder, toy)
        stored_once(toy)

    await bites(check, tmp_path, mistakes.ingest_for_every_question(), "stored more than once")


async def test_a_fixed_sleep_taken_for_indexed(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        toy = ToySystem(delay_s=0.5)
        await run(folder, toy)
        assert set(added_before_each_retrieve(toy)) == {TURNS}, "asked before all was indexed"

    await bites(check, tmp_path, mistakes.a_sleep_for_a_barrier(), "asked before all was indexed")


async def test_only_the_last_batch_awaited(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        toy = ToySystem(delay_s=0.05)
        await run(folder, toy, as_of=True)
        said_by_then = [6, *[TURNS] * (len(QUESTIONS) - 1)]
        assert list(added_before_each_retrieve(toy)) == said_by_then, "asked before its batch was indexed"

    await bites(check, tmp_path, mistakes.only_the_last_batch_awaited(TURNS), "asked before its batch was indexed")


async def test_an_exception_returned_as_an_empty_list(tmp_path: Path) -> None:
    class Broken(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            raise error("STORE_UNREACHABLE" if "cat" in query.text else "INTERNAL", "the toy was told to")

    async def check(folder: Path) -> None:
        await run(folder, Broken(), patience_s=0.0)
        outcomes = Counter(row.outcome for row in rows(folder / "run"))
        assert Outcome.ANSWERED not in outcomes, "an error was answered from nothing"
        assert outcomes == {Outcome.INFRASTRUCTURE_ERROR: 1, Outcome.SYSTEM_ERROR: 3}

    await bites(check, tmp_path, mistakes.an_error_is_an_empty_list(), "answered from nothing")


async def test_a_judges_error_scored_as_wrong(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        server = ModelServer(chat=lambda _: '{"verdict": 2}', faults=[web.Response(status=500)])
        async with serve_models(server):
            end, _ = await run(folder, ToySystem(), judge=model(server, "judge"))
        scored = Counter(row.correct for row in rows(folder / "run"))
        assert scored == {None: 1, True: 3}, "the judge's error was scored"
        assert not end.complete, "it is judged again when the run goes on"

    await bites(check, tmp_path, mistakes.a_judges_error_is_a_wrong_answer(), "the judge's error was scored")


async def test_an_unparsable_verdict_taken_for_right(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        async with serve_models(ModelServer(chat=lambda _: "It reads well to me.")) as server:
            await run(folder, ToySystem(), judge=model(server, "judge"))
        found = rows(folder / "run")
        assert {(row.correct, row.verdict) for row in found} == {(None, None)}, "a verdict was made up"
        assert all("no verdict of the rubric" in row.judge_note for row in found)

    await bites(check, tmp_path, mistakes.an_unreadable_verdict_is_right(), "a verdict was made up")


@contextmanager
def a_lost_answer() -> Iterator[None]:
    """The first AddTurns reaches the system, and its answer does not come back."""
    add, lost = AsyncClient.add_turns, list[str]()

    async def losing(self: AsyncClient, space_id: str, turns: Any) -> Any:
        added = await add(self, space_id, turns)
        if not lost:
            lost.append(space_id)
            raise error("STORE_UNREACHABLE", "the line went down")
        return added

    with patch.object(AsyncClient, "add_turns", losing):
        yield


async def test_a_retry_that_stores_a_batch_again(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        toy = Recorder()
        with a_lost_answer():
            await run(folder, toy, patience_s=5.0)
        stored_once(toy)

    await bites(check, tmp_path, mistakes.a_retry_that_stores_again(), "stored more than once")


async def test_a_guard_that_loads_the_first_dialogue_only(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        names = [str(n) for n in range(5)]
        await run(folder, ToySystem(), data=write_data(folder / "d.jsonl", dialogues=names))
        assert sorted({row.dialogue_id for row in rows(folder / "run")}) == names, "a dialogue is missing"

    await bites(check, tmp_path, mistakes.the_first_dialogue_only(), "a dialogue is missing")


@pytest.mark.parametrize("time", [mistakes.nothing, mistakes.now])
async def test_times_dropped_or_replaced_by_now(tmp_path: Path, time: Callable[[Any], Any]) -> None:
    async def check(folder: Path) -> None:
        toy = Recorder()
        await run(folder, toy)
        told = {turn.text: turn.time for turns in toy.turns.values() for turn in turns}
        when = datetime(2024, 3, 11, 9, 0, tzinfo=UTC)
        assert told["Yesterday I bought a green bicycle"] == when, "a turn came with another time"
        memories = [memory for row in rows(folder / "run") for memory in row.memories]
        assert {memory.time for memory in memories if "bicycle" in memory.text} == {when.isoformat()}

    await bites(check, tmp_path, mistakes.times(time), "came with another time")


async def test_the_gold_visible_to_the_answer_model(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        gold = question(
            "q0", "What is my cat called", "gold-xyzzy", evidence_turns=["s1-t0"], tags={"semantic": "xyzzy"}
        )
        data = write_data(folder / "d.jsonl", dialogues=ONE, questions=[gold])
        toy = Recorder()
        async with serve_models(ModelServer(chat=lambda _: "Bublik")) as server:
            await run(folder, toy, data=data, baselines=("full-context", "oracle"), answerer=model(server, "answer"))
        assert len(server.requests) == 3
        seen = f"{server.requests} {toy.turns} {toy.queries}"
        assert "xyzzy" not in seen, "the gold was shown"
        assert "s1-t0" not in str(server.requests), "the evidence was named"

    await bites(check, tmp_path, mistakes.the_gold_in_the_question(), "the gold was shown")


async def test_a_judge_prompt_of_a_vendors_own(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        prompts = []
        for name in ("mine", "theirs"):
            async with serve_models(ModelServer(chat=lambda _: '{"verdict": 2}')) as server:
                (folder / name).mkdir()
                await run(folder / name, ToySystem(name=name), judge=model(server, "judge"))
                prompts.append(sorted(str(body) for _, body in server.requests))
        assert len(prompts[0]) == len(QUESTIONS)
        assert prompts[0] == prompts[1], "one system was judged by another prompt"

    await bites(check, tmp_path, mistakes.a_judge_prompt_for("theirs"), "judged by another prompt")


async def test_an_empty_context_marked_wrong(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        toy = ToySystem()
        toy.alter = lambda memories: []
        await run(folder, toy)
        assert row_of(folder / "run", "q2").correct, "having found nothing was wrong where nothing was to be found"
        assert row_of(folder / "run", "q0").correct is False

    await bites(check, tmp_path, mistakes.an_empty_context_is_wrong(), "having found nothing was wrong")


async def test_a_hit_called_recall(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        both = question("q0", "My cat and my sister Olga", "Bublik, Perm", evidence_turns=["s1-t0", "s3-t0"])
        await run(folder, ToySystem(), ks=(1,), data=write_data(folder / "d.jsonl", dialogues=ONE, questions=[both]))
        assert row_of(folder / "run", "q0").recall_turns == 0.5, "half of the evidence is half of the recall"

    await bites(check, tmp_path, mistakes.a_hit_called_recall(), "half of the evidence")


async def test_a_denominator_that_shrinks_on_failure(tmp_path: Path) -> None:
    class Broken(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            if "bicycle" in query.text:
                raise error("INTERNAL", "the toy was told to")
            return await super().retrieve(space, query)

    async def check(folder: Path) -> None:
        await run(folder, Broken())
        found = summary_of(read_run(Folder(str(folder / "run"))))["systems"]["toy"]["languages"]["en"]
        right = sum(row.correct is True for row in rows(folder / "run"))
        assert found["judge_accuracy"] == right / len(QUESTIONS), "the failed question was left out"
        assert found["n_scored"] == found["n_questions"] == len(QUESTIONS)

    await bites(check, tmp_path, mistakes.failures_left_out(), "the failed question was left out")


async def test_unseeded_sampling(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        data = write_data(folder / "d.jsonl", dialogues=[str(n) for n in range(24)])
        samples = []
        for place, seed in enumerate((5, 5, 6)):
            out = folder / str(place)
            sample = Sample(dialogues=9, seed=seed)
            await ran(settings(data, out, baselines=("refusal",), sample=sample))
            samples.append({row.dialogue_id for row in rows(out)})
        assert samples[0] == samples[1], "the same seed drew another sample"
        assert samples[0] != samples[2]

    await bites(check, tmp_path, mistakes.an_unseeded_sample(), "the same seed drew another sample")


async def test_a_different_k_for_one_system(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        asked = set()
        for name in ("mine", "theirs"):
            toy = Recorder(name=name)
            (folder / name).mkdir()
            await run(folder / name, toy, ks=(3,))
            asked |= {query.top_k for _, query in toy.queries}
        assert asked == {3}, "a system was asked for another number of memories"

    await bites(check, tmp_path, mistakes.another_k_for("theirs"), "asked for another number of memories")


class InReverse(ModelServer):
    """Answers the first request at once, and the others, when all are there, the last one first."""

    def __init__(self, requests: int) -> None:
        super().__init__(chat=lambda body: body["messages"][0]["content"].split("Question number ")[1].split()[0])
        self._answered = [asyncio.Event() for _ in range(requests + 1)]
        self._answered[requests].set()

    async def _fault(self) -> None:
        place = len(self.requests) - 1
        if place:
            await self._answered[place + 1].wait()
        self._answered[place].set()


async def test_answers_zipped_to_questions_by_position(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        asked = [question(f"q{n}", f"Question number {n}", str(n)) for n in range(8)]
        data = write_data(folder / "d.jsonl", dialogues=ONE, questions=asked)
        async with serve_models(InReverse(len(asked))) as server:
            closed_book = settings(
                data,
                folder / "run",
                baselines=("closed-book",),
                answerer=model(server, "answer"),
                parallel_questions=len(asked),
            )
            await ran(closed_book)
        answers = {row.question_id: row.answer for row in rows(folder / "run")}
        assert answers == {f"q{n}": str(n) for n in range(8)}, "an answer went to another question"

    await bites(check, tmp_path, mistakes.answers_zipped_by_position(), "an answer went to another question")


@contextmanager
def a_last_reset_that_fails() -> Iterator[None]:
    """A space is emptied before the dialogue; to give it back afterwards fails."""
    reset, done = AsyncClient.reset, list[str]()

    async def failing(self: AsyncClient, space_id: str) -> Any:
        if done:
            raise error("INTERNAL", "the store was told to")
        done.append(space_id)
        return await reset(self, space_id)

    with patch.object(AsyncClient, "reset", failing):
        yield


async def test_errors_of_reset_swallowed(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        with a_last_reset_that_fails():
            end, said = await run(folder, ToySystem())
        space = f"eval-{end.manifest.run_id}-0-en"
        assert end.spaces_not_reset == (space,), "a space that was not reset is not told"
        assert f"space {space} was not reset: the store was told to" in " ".join(said.split())
        assert not end.complete

    await bites(check, tmp_path, mistakes.errors_of_reset_swallowed(), "not reset is not told")


async def test_two_runs_that_reset_each_others_spaces(tmp_path: Path) -> None:
    async def check(folder: Path) -> None:
        data, toy = write_data(folder / "d.jsonl", dialogues=ONE), ToySystem()
        async with served_url(toy, folder / "toy") as url:
            mine, theirs = (settings(data, folder / name, url=url, systems=("toy",)) for name in ("mine", "theirs"))
            await ran(replace(mine, stop_after="ingest"))
            [(space, held)] = [(space, list(kept)) for space, kept in toy.kept.items()]
            await ran(theirs)
            assert toy.kept.get(space) == held, "another run has touched the space"
            end, _ = await ran(mine)
        assert end.complete

    await bites(check, tmp_path, mistakes.spaces_that_runs_share(), "another run has touched the space")
