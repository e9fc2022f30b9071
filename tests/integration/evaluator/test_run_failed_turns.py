"""Turns that a system failed at: counted, marked in the rows, sent again by the same command, or taken as they are."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from memdock.client import connect_async
from memdock.errors import error
from memdock.types import Limits, Memory, Query
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.cli import main
from memdock_evaluator.faults import Fault
from memdock_evaluator.report import write_report
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.records import Ingested
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.review.verify import VerifyError, verify
from memdock_evaluator.run import space
from memdock_evaluator.run.ingest import Ingest
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.summary import summarise
from support.evaluation import ran, row_of, rows, served_url, session, settings, write_data
from support.model_server import ModelServer, serve_models
from support.toys import ToySystem

TURN = "s1-t0"
"""What q0 rests on."""


def run_of(folder: Path, url: str, **fields: Any) -> RunSettings:
    data = write_data(folder / "d.jsonl")
    return settings(data, folder / "run", url=url, systems=("toy",), **fields)


def failing(*turn_ids: str) -> ToySystem:
    toy = ToySystem()
    toy.failing = set(turn_ids)
    return toy


def added(toy: ToySystem) -> list[str]:
    return [turn for ids in toy.calls("add") + toy.calls("final add") for turn in ids]


async def straight(folder: Path, **fields: Any) -> bytes:
    """The rows of a run in which nothing failed."""
    async with served_url(ToySystem(), folder / "other") as url:
        run = run_of(folder, url, **fields)
        await ran(replace(run, out=f"{run.out}-straight"))
    return Path(f"{run.out}-straight", "outcomes.jsonl").read_bytes()


async def test_the_run_finishes_counts_them_and_marks_the_rows_that_rest_on_them(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        end, said = await ran(run_of(tmp_path, url))
    totals = end.manifest.totals["toy"]
    assert (totals.ingest.turns_read, totals.ingest.turns_listed, totals.ingest.searchable) == (16, 16, 14)
    assert (totals.ingest.failed, totals.ingest.retried) == (2, 2)
    assert totals.failed_turns == {"PROVIDER_PROTOCOL_ERROR": 2}
    assert "toy: dialogue 0 (en): 1 of 8 turns failed, the first with PROVIDER_PROTOCOL_ERROR" in said
    assert {row.outcome for row in rows(tmp_path / "run")} == {Outcome.ANSWERED}
    lost = row_of(tmp_path / "run", "q0", dialogue_id="0")
    assert (lost.failed_turns, lost.failed_evidence, lost.correct) == (1, (TURN,), False)
    other = row_of(tmp_path / "run", "q1", dialogue_id="0")
    assert (other.failed_turns, other.failed_evidence, other.correct) == (1, (), True)
    assert (end.complete, end.unanswered, end.lacking, end.only_lacks_turns) == (False, 0, ("toy",), True)
    assert end.manifest.finished is None
    assert len(toy.kept) == 2, "the spaces are kept to be filled up"
    caveats = summarise(rows(tmp_path / "run"), [], end.manifest)["caveats"]
    assert [caveat["text"] for caveat in caveats if caveat["about"] == "ingest"] == [
        "Turns that had failed and were sent again: toy 2.",
        "toy: 2 of 16 turns could not be stored (PROVIDER_PROTOCOL_ERROR 2), in 2 dialogues; they are evidence of "
        "2 questions, which are scored as they stand.",
    ]


async def test_the_same_run_sends_them_again_and_asks_again_what_could_have_changed(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url))
        before, retrieved = added(toy), len(toy.calls("retrieve"))
        toy.failing.clear()
        end, _ = await ran(run_of(tmp_path, url))
    assert end.complete
    assert sorted(added(toy)) == sorted([*before, TURN, TURN])
    assert len(toy.calls("retrieve")) == 2 * retrieved
    totals = end.manifest.totals["toy"]
    assert (totals.ingest.searchable, totals.ingest.failed, totals.ingest.retried) == (16, 0, 4)
    assert totals.failed_turns == {}
    assert toy.kept == {}
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == await straight(tmp_path)


async def test_only_the_dialogues_that_are_whole_now_are_asked_again(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url))
        before, retrieved = (tmp_path / "run/outcomes.jsonl").read_bytes(), len(toy.calls("retrieve"))
        end, said = await ran(run_of(tmp_path, url))
    assert len(toy.calls("retrieve")) == retrieved
    assert end.only_lacks_turns
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == before
    assert "8/8 questions retrieved" in said
    assert "16/16 turns processed" in said


async def test_a_share_that_is_allowed_takes_the_run_as_it_is(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url))
        retrieved = len(toy.calls("retrieve"))
        assert (await ran(run_of(tmp_path, url, allowed_failed_turns=0.12)))[0].only_lacks_turns
        end, _ = await ran(run_of(tmp_path, url, allowed_failed_turns=0.125))
    assert end.complete
    assert end.manifest.finished is not None
    assert len(toy.calls("retrieve")) == retrieved
    assert toy.kept == {}


async def test_a_run_that_allows_them_from_the_first_is_complete(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(run_of(tmp_path, url, allowed_failed_turns=0.2))
        assert end.complete
        assert toy.kept == {}
        toy.failing.clear()
        end, _ = await ran(run_of(tmp_path, url))
    assert end.complete, "a space that was given back is filled anew"
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == await straight(tmp_path)


async def test_a_space_that_was_lost_meanwhile_is_filled_anew(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url))
        async with connect_async(url, system="toy") as client:
            for name in list(toy.kept):
                await client.reset(name)
        toy.failing.clear()
        end, _ = await ran(run_of(tmp_path, url))
    assert end.complete
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == await straight(tmp_path)


async def test_a_run_as_of_each_question_stores_such_a_dialogue_anew(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        assert (await ran(run_of(tmp_path, url, as_of=True)))[0].only_lacks_turns
        toy.failing.clear()
        end, _ = await ran(run_of(tmp_path, url, as_of=True))
    assert end.complete
    assert all(row.failed_turns == 0 for row in rows(tmp_path / "run"))


async def test_a_system_that_cannot_be_asked_when_they_are_sent_again_loses_nothing(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url))
        before = (tmp_path / "run/outcomes.jsonl").read_bytes()
        toy.gate.clear()
        end, said = await ran(run_of(tmp_path, url, flush_timeout_s=0.2))
        toy.gate.set()
        assert "toy: dialogue 0 (en): its failed turns were not sent again: 1 turn still pending after 0.2 s" in said
        assert end.only_lacks_turns
        assert (tmp_path / "run/outcomes.jsonl").read_bytes() == before
        toy.failing.clear()
        end, _ = await ran(run_of(tmp_path, url))
    assert end.complete
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == await straight(tmp_path)


def killed(*_: object) -> None:
    """Stands for a place at which the process is killed."""
    raise ZeroDivisionError


async def late(*_: object) -> Ingested:
    raise Fault(Outcome.INFRASTRUCTURE_ERROR, "DEADLINE_EXCEEDED", "late")


async def test_a_kill_between_storing_and_noting_it_asks_again_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = failing(TURN)
    async with served_url(toy, tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url))
        toy.failing.clear()

        keep = space.Space.keep
        monkeypatch.setattr(space.Space, "keep", killed)
        with pytest.raises(ZeroDivisionError):
            await ran(run_of(tmp_path, url, concurrency=1))
        monkeypatch.setattr(space.Space, "keep", keep)
        end, _ = await ran(run_of(tmp_path, url))
    assert end.complete
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == await straight(tmp_path)


@pytest.mark.parametrize("lost", ["kill", "fault", "deleted"])
async def test_an_ingest_whose_end_was_never_kept_is_done_again_with_its_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    async with served_url(failing(TURN), tmp_path / "straight-toy") as url:
        run = run_of(tmp_path, url, as_of=True)
        assert (await ran(replace(run, out=f"{run.out}-straight")))[0].only_lacks_turns
    async with served_url(toy := failing(TURN), tmp_path / "toy") as url:
        run = run_of(tmp_path, url, as_of=True)
        with monkeypatch.context() as patch:
            if lost == "kill":
                patch.setattr(space.Space, "keep", killed)
                with pytest.raises(ZeroDivisionError):
                    await ran(replace(run, concurrency=1))
            elif lost == "fault":
                patch.setattr(Ingest, "finish", late)
                end, _ = await ran(run)
                assert {(row.outcome, row.reason) for row in rows(tmp_path / "run")} == {
                    (Outcome.INFRASTRUCTURE_ERROR, "DEADLINE_EXCEEDED")
                }
                assert (end.unanswered, end.manifest.finished) == (8, None)
            else:
                await ran(run)
                for part in tmp_path.glob("run/parts/**/ingest-001.jsonl"):
                    part.unlink()
                write_report(tmp_path / "run")
                with pytest.raises(VerifyError, match=r"parts/toy/en/0: no ingest part says what became of"):
                    verify(Folder(str(tmp_path / "run")))
        end, _ = await ran(run)
        assert end.only_lacks_turns
        assert all(row.failed_turns == 1 and row.storage_listed for row in rows(tmp_path / "run"))
        assert end.manifest.totals["toy"].ingest.failed == 2
        assert len(toy.kept) == 2, "the spaces are kept to be filled up"
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == Path(f"{run.out}-straight/outcomes.jsonl").read_bytes()


async def test_a_question_asked_again_as_of_its_date_leaves_the_ingest_whole(tmp_path: Path) -> None:
    async with served_url(toy := ToySystem(), tmp_path / "toy") as url:
        run, retrieve = run_of(tmp_path, url, as_of=True, patience_s=0.0), toy.retrieve

        async def unreachable(space: str, query: Query) -> Sequence[Memory]:
            if "bicycle" in query.text:
                raise error("STORE_UNREACHABLE", "gone")
            return await retrieve(space, query)

        toy.retrieve = unreachable  # type: ignore[method-assign]
        assert (await ran(run))[0].unanswered == 2
        toy.retrieve = retrieve  # type: ignore[method-assign]
        end, _ = await ran(run)
        assert end.complete
        assert end.manifest.totals["toy"].ingest.turns_read == 16, "also those behind the date of that question"
        assert len(toy.calls("retrieve")) == 8, "the others are not asked again"
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == await straight(tmp_path, as_of=True)


async def test_a_stop_before_the_questions_are_answered_again_leaves_none_of_the_old_rows(tmp_path: Path) -> None:
    toy = failing(TURN)
    async with (
        serve_models(ModelServer(chat=lambda body: str(len(body["messages"][0]["content"])))) as server,
        served_url(toy, tmp_path / "toy") as url,
    ):
        answerer = ModelSettings(endpoint=ModelEndpoint(purpose="answer", url=server.url, model="m", tries=1))
        assert (await ran(run_of(tmp_path, url, answerer=answerer)))[0].only_lacks_turns
        before = rows(tmp_path / "run")
        toy.failing.clear()
        server.faults = [web.json_response({"error": {"message": "expired"}}, status=401) for _ in range(9)]
        end, _ = await ran(run_of(tmp_path, url, answerer=answerer, concurrency=1))
        assert "refuses the key" in end.stopped
        assert (end.complete, end.unanswered) == (False, 4)
        again = [row for row in rows(tmp_path / "run") if row.outcome is Outcome.INFRASTRUCTURE_ERROR]
        assert {(row.dialogue_id, row.reason, row.correct, row.recall_turns) for row in again} == {
            ("0", "STORED_ANEW", None, None)
        }
        server.faults = []
        end, _ = await ran(run_of(tmp_path, url, answerer=answerer))
    assert end.complete
    after = rows(tmp_path / "run")
    assert [row.key for row in after] == [row.key for row in before]
    assert all(row.outcome is Outcome.ANSWERED and not row.failed_turns for row in after)
    lost, found = (next(row for row in each if row.question_id == "q0") for each in (before, after))
    assert (lost.recall_turns, found.recall_turns) == (0, 1)
    assert lost.answer != found.answer, "it was asked with what is stored now"


async def test_a_turn_that_no_further_try_can_store_is_told_alike(tmp_path: Path) -> None:
    long = session("2024-03-04T20:15:00", "My cat is called Bublik", "x" * 500)
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",), sessions=[long])
    async with served_url(ToySystem(limits=Limits(max_turn_bytes=100)), tmp_path / "toy") as url:
        for _ in range(2):
            end, _ = await ran(settings(data, tmp_path / "run", url=url, systems=("toy",)))
            assert end.only_lacks_turns
            assert end.manifest.totals["toy"].failed_turns == {"PAYLOAD_TOO_LARGE": 1}


async def test_the_command_ends_with_3_says_why_and_what_to_do(tmp_path: Path) -> None:
    import asyncio

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["run", "--data", str(data), "--out", str(tmp_path / "run"), *words])

    data = write_data(tmp_path / "d.jsonl")
    async with served_url(failing(TURN), tmp_path / "toy") as url:
        flags = ("--url", url, "--system", "toy")
        done = await asyncio.to_thread(run, *flags)
        assert done.exit_code == 3
        assert done.output.splitlines()[-1] == (
            "Error: toy: 2 of 16 turns failed (PROVIDER_PROTOCOL_ERROR 2); the same command sends them again, "
            "--allow-failed-turns PERCENT takes the run as it is"
        )
        assert (tmp_path / "run/report.html").exists()
        done = await asyncio.to_thread(run, *flags, "--allow-failed-turns", "12.5")
        assert done.exit_code == 0, done.output
