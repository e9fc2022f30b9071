"""What goes wrong in a memory system or on the way to it: told apart, counted, told to the user, never swallowed."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from memdock.errors import error
from memdock.types import Feature, Limits, TurnError, TurnState
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.faults import RunStoppedError, turn_failed_by_infrastructure
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.run.settings import SettingsError
from support.evaluation import ran, row_of, rows, served_url, session, settings, write_data
from support.model_server import ModelServer, serve_models
from support.served import until
from support.toys import ToySystem, without


@pytest.mark.parametrize(
    ("reason", "outcome", "correct"),
    [
        ("INTERNAL", Outcome.SYSTEM_ERROR, False),
        ("PROVIDER_PROTOCOL_ERROR", Outcome.SYSTEM_ERROR, False),
        ("EMBEDDER_MISMATCH", Outcome.SYSTEM_ERROR, False),
        ("FILTER_UNSUPPORTED", Outcome.SYSTEM_ERROR, False),
        ("PROVIDER_AUTH_FAILED", Outcome.INFRASTRUCTURE_ERROR, None),
        ("PROVIDER_RATE_LIMITED", Outcome.INFRASTRUCTURE_ERROR, None),
        ("STORE_UNREACHABLE", Outcome.INFRASTRUCTURE_ERROR, None),
        ("PROVIDER_TIMEOUT", Outcome.INFRASTRUCTURE_ERROR, None),
    ],
)
async def test_an_error_of_retrieve_is_the_systems_or_the_infrastructures(
    tmp_path: Path, reason: str, outcome: Outcome, correct: bool | None
) -> None:
    class Broken(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            if "bicycle" in query.text:
                raise error(reason, "the toy was told to")
            return await super().retrieve(space, query)

    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(Broken(), tmp_path / "toy") as url:
        end, _ = await ran(settings(data, out, url=url, systems=("toy",), patience_s=0.0))
    hit = row_of(out, "q3")
    assert (hit.outcome, hit.reason, hit.detail, hit.correct) == (outcome, reason, "the toy was told to", correct)
    assert (hit.answer, hit.memories) == (None, ())
    nothing_found = 0.0 if outcome is Outcome.SYSTEM_ERROR else None
    assert (hit.recall_turns, hit.recall_sessions, hit.ndcg_turns) == (nothing_found,) * 3
    assert row_of(out, "q0").correct, "its neighbours are untouched"
    assert len(rows(out)) == 4, "the denominator does not shrink"
    assert end.complete == (outcome is Outcome.SYSTEM_ERROR)
    coverage = end.manifest.totals["toy"].coverage
    assert (coverage.expected, coverage.scored) == (4, 3 + (correct is not None))


async def test_a_system_that_always_fails_found_nothing_where_it_names_sources_and_only_by_known_evidence(
    tmp_path: Path,
) -> None:
    class Broken(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            raise error("INTERNAL", "the toy was told to")

    data = write_data(tmp_path / "d.jsonl", dialogues=("0",))
    for name, toy, found in (("names", Broken(), 0.0), ("silent", Broken(features=without(Feature.SOURCES)), None)):
        async with served_url(toy, tmp_path / f"toy-{name}") as url:
            await ran(settings(data, tmp_path / name, url=url, systems=("toy",)))
        assert row_of(tmp_path / name, "q0").recall_turns == found
        assert row_of(tmp_path / name, "q2").recall_turns is None, "its evidence is not known"


async def test_a_failed_turn_is_sent_once_more(tmp_path: Path) -> None:
    class FailsOnce(ToySystem):
        async def add(self, space: str, turns: Any, *, final: bool) -> Any:
            batch = await super().add(space, turns, final=final)
            self.failing.clear()
            return batch

    toy = FailsOnce()
    toy.failing = {"s1-t0", "s1-t1"}
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(settings(data, out, url=url, systems=("toy",)))
    ingest = end.manifest.totals["toy"].ingest
    assert (ingest.turns_read, ingest.turns_listed, ingest.searchable, ingest.failed) == (8, 8, 8, 0)
    assert ingest.retried in (1, 2), "those of the first batch"
    assert end.complete


async def test_turns_that_are_not_worth_keeping_are_told_apart(tmp_path: Path) -> None:
    toy = ToySystem()
    toy.empty = {"s1-t1", "s2-t0"}
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",))
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(settings(data, tmp_path / "run", url=url, systems=("toy",)))
    ingest = end.manifest.totals["toy"].ingest
    assert (ingest.searchable, ingest.no_memory, ingest.failed) == (6, 2, 0)
    rows = [Row.from_json(line) for line in (tmp_path / "run/outcomes.jsonl").read_bytes().splitlines()]
    assert any(row.unstored_evidence for row in rows)
    assert all(set(row.unstored_evidence) == set(row.evidence_turns) & toy.empty for row in rows)


async def test_a_turn_that_failed_for_want_of_a_provider_is_no_fault_of_the_memory(tmp_path: Path) -> None:
    class NoProvider(ToySystem):
        def _outcome(self, turn: Any, kept: str) -> Any:
            outcome = super()._outcome(turn, kept)
            if outcome.state is not TurnState.FAILED:
                return outcome
            limited = TurnError(reason="PROVIDER_RATE_LIMITED", message="slow down", retryable=True)
            return type(outcome)(state=TurnState.FAILED, error=limited)

    toy = NoProvider()
    toy.failing = {"s1-t0"}
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(toy, tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",))
        end, _ = await ran(run)
        assert {(row.outcome, row.reason) for row in rows(out)} == {
            (Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_RATE_LIMITED")
        }
        assert (end.complete, end.unanswered) == (False, 4)
        toy.failing.clear()
        end, _ = await ran(run)
    assert end.complete
    assert end.manifest.totals["toy"].ingest.searchable == 8
    assert row_of(out, "q0").correct


def test_whose_fault_a_failed_turn_is() -> None:
    def turn_error(reason: str) -> TurnError:
        return TurnError(reason=reason, message="m", retryable=False)

    assert turn_failed_by_infrastructure(turn_error("PROVIDER_UNREACHABLE"))
    assert not turn_failed_by_infrastructure(turn_error("INTERNAL"))
    assert not turn_failed_by_infrastructure(turn_error("PAYLOAD_TOO_LARGE"))
    assert not turn_failed_by_infrastructure(turn_error("A_WORD_OF_ITS_OWN"))


async def test_a_turn_larger_than_the_system_takes_is_a_failed_turn(tmp_path: Path) -> None:
    long = session("2024-03-04T20:15:00", "My cat is called Bublik", "x" * 500)
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",), sessions=[long]), tmp_path / "run"
    async with served_url(ToySystem(limits=Limits(max_turn_bytes=100)), tmp_path / "toy") as url:
        end, said = await ran(settings(data, out, url=url, systems=("toy",)))
    ingest = end.manifest.totals["toy"].ingest
    assert (ingest.turns_read, ingest.turns_listed, ingest.failed) == (2, 1, 1)
    assert "the first with PAYLOAD_TOO_LARGE: the turn has 500 bytes, and the system takes 100" in said
    assert row_of(out, "q0").correct


async def test_the_barrier_waits_for_the_last_and_the_first_batch(tmp_path: Path) -> None:
    toy = ToySystem(delay_s=0.1)
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0", "1")), tmp_path / "run"
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(settings(data, out, url=url, systems=("toy",)))
    assert end.manifest.totals["toy"].ingest.searchable == 16
    assert end.manifest.totals["toy"].ingest.stale_reads == 0
    for space in {space for name, space, _ in toy.log if name == "retrieve"}:
        calls = [name for name, where, _ in toy.log if where == space]
        assert calls.index("retrieve") > max(n for n, name in enumerate(calls) if name in ("add", "final add"))


async def test_a_barrier_that_never_opens_is_no_fault_of_the_questions(tmp_path: Path) -> None:
    toy = ToySystem()
    toy.gate.clear()
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(toy, tmp_path / "toy") as url:
        end, said = await ran(settings(data, out, url=url, systems=("toy",), flush_timeout_s=0.3))
        toy.gate.set()
        assert {row.reason for row in rows(out)} == {"DEADLINE_EXCEEDED"}
        assert "8 turns still pending after 0.3 s" in said
        assert "8/8 turns accepted" in said
        assert re.search(r"0/8 turns processed \(0\.0/s, 8 wait\)", said)
        assert not end.complete
        end, _ = await ran(settings(data, out, url=url, systems=("toy",)))
    assert end.complete


async def test_an_error_of_the_first_reset_is_not_swallowed(tmp_path: Path) -> None:
    toy = ToySystem()
    toy.erase_fault = error("INTERNAL", "cannot erase")
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(toy, tmp_path / "toy") as url:
        end, said = await ran(settings(data, out, url=url, systems=("toy",), call_timeout_s=0.5))
        toy.erase_fault = None
    assert "toy: dialogue 0 (en) could not be stored" in said
    assert {row.outcome for row in rows(out)} == {Outcome.INFRASTRUCTURE_ERROR}, "the server goes on trying"
    assert toy.kept == {}
    assert len(end.spaces_not_reset) == 1
    assert not end.complete


async def test_an_error_of_the_last_reset_is_told_and_tried_again_by_the_next_run(tmp_path: Path) -> None:
    class Sticky(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            self.erase_fault = error("INTERNAL", "cannot erase")
            return await super().retrieve(space, query)

    toy = Sticky()
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(toy, tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",), call_timeout_s=0.5)
        end, said = await ran(run)
        (space,) = toy.kept
        assert f"toy: space {space} was not reset" in said
        assert end.spaces_not_reset == (space,)
        assert (end.complete, end.unanswered) == (False, 0)
        before = (out / "outcomes.jsonl").read_bytes()
        toy.erase_fault = None
        end, _ = await ran(run)
        assert toy.kept == {}
    assert end.complete
    assert (out / "outcomes.jsonl").read_bytes() == before


async def test_keep_leaves_the_spaces_and_says_which(tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",)), ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), keep=True))
        assert end.complete
        assert end.manifest.totals["toy"].spaces_not_reset == tuple(toy.kept)
        assert len(toy.kept) == 1


async def test_two_runs_at_once_never_touch_each_others_spaces(tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl"), ToySystem(delay_s=0.01)
    async with served_url(toy, tmp_path / "toy") as url:
        runs = [settings(data, tmp_path / name, url=url, systems=("toy",)) for name in "abc"]
        ends = await asyncio.gather(*map(ran, runs))
    assert all(end.complete for end, _ in ends)
    contents = {(tmp_path / name / "outcomes.jsonl").read_bytes() for name in "abc"}
    assert len(contents) == 1
    assert all(row.outcome is Outcome.ANSWERED for row in rows(tmp_path / "a"))


async def test_a_system_that_is_not_there_stops_the_run_at_once(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl")
    run = settings(data, tmp_path / "run", url="grpc://127.0.0.1:9", systems=("toy",), call_timeout_s=2.0)
    with pytest.raises(RunStoppedError, match=r"memory system toy at grpc://127.0.0.1:9 cannot be used"):
        await ran(run)
    assert not (tmp_path / "run/manifest.json").exists()


async def test_an_unknown_system_is_named(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl")
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        with pytest.raises(SettingsError, match=r"there is no system 'toi' here; this server is 'toy'"):
            await ran(settings(data, tmp_path / "run", url=url, systems=("toi",)))


async def test_a_key_that_is_refused_is_said_so(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl")
    async with served_url(ToySystem(), tmp_path / "toy", token="right") as url:
        with pytest.raises(SettingsError, match=r"asks for a key and none was given: --key-file"):
            await ran(settings(data, tmp_path / "run", url=url, systems=("toy",)))
        with pytest.raises(SettingsError, match="refuses the key") as caught:
            await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), key="wrong-key"))
        assert "wrong-key" not in str(caught.value)
        assert (await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), key="right")))[0].complete


async def test_a_system_that_dies_on_the_way_stops_the_run_which_goes_on_when_it_is_back(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=[str(n) for n in range(8)]), tmp_path / "run"
    toy = ToySystem()
    toy.read_delay_s = 0.02
    async with served_url(toy, tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",), concurrency=2, call_timeout_s=2.0)
        running = asyncio.create_task(ran(run))
        await until(lambda: len(toy.calls("retrieve")) >= 6)
    end, _ = await running
    assert "memory system toy failed 5 times in a row; the last time: " in end.stopped
    assert (end.complete, end.has_rows) == (False, False)
    healthy = ToySystem()
    async with served_url(healthy, tmp_path / "again") as url:
        end, said = await ran(settings(data, out, url=url, systems=("toy",)))
    assert said.startswith("going on with the run")
    assert end.complete
    assert [row.outcome for row in rows(out)] == [Outcome.ANSWERED] * 32
    assert 0 < len(healthy.calls("retrieve")) < 32, "what had been retrieved is kept"


async def test_a_judge_that_fails_leaves_the_answer_unscored_never_wrong(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with serve_models(ModelServer(chat=lambda body: "looks right to me")) as server:
        judge = ModelSettings(endpoint=ModelEndpoint(purpose="judge", url=server.url, model="m"))
        end, _ = await ran(settings(data, out, baselines=("oracle",), judge=judge))
    assert {(row.outcome, row.verdict, row.correct) for row in rows(out)} == {(Outcome.ANSWERED, None, None)}
    assert all("no verdict" in row.judge_note and row.answer for row in rows(out))
    assert end.complete
    coverage = end.manifest.totals["baseline:oracle"].coverage
    assert (coverage.answered, coverage.scored) == (4, 0)


async def test_a_prompt_that_does_not_fit_the_model_is_wrong_and_one_that_is_declined_is_unscored(
    tmp_path: Path,
) -> None:
    from aiohttp import web

    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    declined = {"error": {"message": "no", "code": "content_filter"}}
    async with serve_models(ModelServer()) as server:
        server.faults = [web.Response(status=413, text="{}"), web.json_response(declined, status=400)]
        endpoint = ModelEndpoint(purpose="answer", url=server.url, model="m")
        run = settings(
            data,
            out,
            baselines=("full-context",),
            answerer=ModelSettings(endpoint=endpoint),
            parallel_questions=1,
        )
        end, _ = await ran(run)
    too_long, refused = row_of(out, "q0"), row_of(out, "q1")
    assert (too_long.outcome, too_long.reason, too_long.correct) == (
        Outcome.SYSTEM_ERROR,
        "PAYLOAD_TOO_LARGE",
        False,
    )
    assert (refused.outcome, refused.reason, refused.correct) == (Outcome.REFUSED, "CONTENT_FILTERED", None)
    assert end.complete
