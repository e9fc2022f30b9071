"""`memdock-eval forgetting` on systems that are really served: sound ones pass, mutants are caught, faults are told."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from memdock.errors import error
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import System
from memdock.types import Feature
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.forgetting.settings import ForgettingSettings
from memdock_evaluator.forgetting.suite import forgetting_suite
from memdock_evaluator.suites.ending import SuiteEnd
from support.evaluation import settings, write_data
from support.model_server import ModelServer, serve_models
from support.mutants import ForgetsNothing, ForgetsTheVectorOnly, ForgetsTheWholeSession, LedgerWithoutTombstones
from support.suites import facts, invoke, lines, quiet, served_at, summary
from support.toys import ToySystem, without

MODES = [mode.value for mode in Mode]
GATE_IS_A_TARGET = 9
"""The seed that draws the question on the gate in one dialogue of the two."""
REX_IS_A_TARGET = 2
"""The seed that draws the question on Rex in both."""


async def forgot(
    system: System,
    tmp_path: Path,
    *,
    ledger: type[SqliteLedger] = SqliteLedger,
    name: str = "out",
    data: dict[str, Any] | None = None,
    modes: tuple[Mode, ...] = tuple(Mode),
    replies: bool = False,
    **run: Any,
) -> SuiteEnd:
    """The end of a suite over two dialogues with two targets each."""
    file = write_data(tmp_path / "d.jsonl", **(data or facts()))
    async with served_at(system, tmp_path / f"toy-{name}", ledger) as url:
        asked = settings(file, tmp_path / name, url=url, systems=("toy",), **run)
        suite = ForgettingSettings(run=asked, modes=modes, targets=2, replies=replies)
        return await forgetting_suite(suite, quiet(), quiet())


def mode_of(tmp_path: Path, mode: str, name: str = "out") -> Any:
    return summary(tmp_path / name)["systems"]["toy"]["en"][mode]


@pytest.mark.parametrize("chunk", [1, 2])
async def test_a_sound_system_leaves_nothing_and_takes_nothing_else(tmp_path: Path, chunk: int) -> None:
    toy = ToySystem(chunk=chunk)
    assert await forgot(toy, tmp_path) == SuiteEnd()
    for mode in MODES:
        found = mode_of(tmp_path, mode)
        assert (found["n_targets"], found["n_retrievable"], found["proof"]) == (4, 4, "absent from ListMemories")
        shares = [found[key] for key in ("left_at_k", "left_deep", "left_listed", "residue", "revived")]
        assert [each["events"] for each in shares] == [0] * 5
        assert all(each["of"] == 4 for each in shares)
        assert found["left_words"]["of"] > 4
        assert found["left_words"]["events"] == 0
        near = found["neighbours"]
        assert (near["n"] > 0, near["recall_before"], near["recall_after"], near["taken"]) == (True, 1.0, 1.0, 0)
        assert found["claims"] == {
            "RAW_TURNS": {"items": 0, "verified": True},
            "VECTOR": {"items": 0, "verified": True},
        }
    for row in lines(tmp_path / "out", "targets.jsonl"):
        assert set(row["after"]["states"].values()) == set(row["retried"]["states"].values()) == {"FORGOTTEN"}
    assert not any(toy.kept.values()), "every space is given back"
    assert len({space for kind, space, _ in toy.log if kind == "add"}) == 6, "one ingest a dialogue and mode"


async def test_two_suites_write_the_same_rows(tmp_path: Path) -> None:
    for name in ("one", "two"):
        await forgot(ToySystem(), tmp_path, name=name)
    for file in ("targets.jsonl", "neighbours.jsonl", "summary.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize("mode", list(Mode))
async def test_an_index_that_forget_does_not_reach_is_found_by_words(tmp_path: Path, mode: Mode) -> None:
    end = await forgot(ForgetsTheVectorOnly(), tmp_path, modes=(mode,))
    assert end.found == (f"toy (en) by {mode}: 4 of 4 questions left something behind (answer 4, words 4)",)
    assert mode_of(tmp_path, mode.value)["left_at_k"]["events"] == 0, "no memory names the turns"


async def test_a_claim_without_a_deed_is_found_where_memories_name_no_sources(tmp_path: Path) -> None:
    end = await forgot(ForgetsNothing(), tmp_path)
    assert [sentence.split(":")[0] for sentence in end.found] == [f"toy (en) by {mode}" for mode in sorted(MODES)]
    found = mode_of(tmp_path, "turn")
    assert (found["by"], found["left_at_k"]["share"], found["residue"]["share"]) == ("words", 1.0, 1.0)
    assert found["claims"]["VECTOR"] == {"items": 0, "verified": True}


async def test_a_turn_that_comes_back_with_a_late_retry_is_found(tmp_path: Path) -> None:
    end = await forgot(ToySystem(), tmp_path, ledger=LedgerWithoutTombstones, modes=(Mode.TURN,))
    assert end.found == ("toy (en) by turn: 4 questions came back with a late retry",)
    [row, *_] = lines(tmp_path / "out", "targets.jsonl")
    assert (row["left"], row["revived"]) == ([], ["turns", "words", "answer", "state"])


async def test_a_session_taken_for_a_turn_is_loss_of_neighbours(tmp_path: Path) -> None:
    end = await forgot(ForgetsTheWholeSession(), tmp_path, modes=(Mode.TURN,))
    assert end.found == ("toy (en) by turn: 2 turns of neighbours went as well",)
    near = mode_of(tmp_path, "turn")["neighbours"]
    assert near["recall_after"] < near["recall_before"] == 1.0
    assert (near["lost"]["events"], near["taken"]) == (2, 2)
    assert {row["question_id"] for row in lines(tmp_path / "out", "neighbours.jsonl") if row["taken"]} == {"q2", "q5"}


async def test_without_lists_no_more_is_said_than_not_retrievable(tmp_path: Path) -> None:
    assert await forgot(ToySystem(features=without(Feature.LIST_MEMORIES)), tmp_path) == SuiteEnd()
    found = mode_of(tmp_path, "turn")
    assert (found["left_listed"], found["proof"]) == (None, "not retrievable at k = 100")


async def test_a_way_that_is_not_declared_is_named_and_the_others_are_measured(tmp_path: Path) -> None:
    toy = ToySystem(features=without(Feature.FORGET_TURNS, Feature.FORGET_MEMORIES))
    assert await forgot(toy, tmp_path) == SuiteEnd()
    assert summary(tmp_path / "out")["unsupported"] == {"toy": ["memory", "turn"]}
    nothing = ToySystem(features=without(Feature.FORGET_TURNS, Feature.FORGET_MEMORIES, Feature.FORGET_SESSIONS))
    end = await forgot(nothing, tmp_path, name="none")
    assert (end.found, end.unmeasured) == ((), ("toy declares no Forget by memory or turn or session",))


async def test_what_was_not_retrievable_before_counts_nowhere(tmp_path: Path) -> None:
    class Blind(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            return []

    end = await forgot(Blind(features=without(Feature.LIST_MEMORIES)), tmp_path, modes=(Mode.TURN,))
    assert end.found == ()
    assert end.unmeasured == (
        "toy (en) by turn: nothing was retrievable before, so that nothing was shown to be forgotten",
    )
    assert mode_of(tmp_path, "turn")["left_at_k"]["of"] == 0


@pytest.mark.parametrize(
    ("reason", "outcome"), [("INTERNAL", "system_error"), ("STORE_UNREACHABLE", "infrastructure_error")]
)
async def test_a_question_that_fails_is_unmeasured_and_the_others_are_measured(
    tmp_path: Path, reason: str, outcome: str
) -> None:
    class Broken(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            if "gate" in query.text:
                raise error(reason, "the toy was told to")
            return await super().retrieve(space, query)

    end = await forgot(Broken(), tmp_path, modes=(Mode.TURN,), patience_s=0.0, seed=GATE_IS_A_TARGET)
    for file in ("targets.jsonl", "neighbours.jsonl"):
        [row] = [row for row in lines(tmp_path / "out", file) if row["blame"]]
        assert (row["question_id"], row["blame"]["outcome"], row["blame"]["reason"]) == ("q1", outcome, reason)
    assert end.found == ()
    assert end.unmeasured == (
        "toy (en) by turn: 1 of 4 questions could not be measured, their rows say why",
        "toy (en) by turn: 1 of 8 neighbours could not be asked, their rows say why",
    )
    assert mode_of(tmp_path, "turn")["left_at_k"]["of"] == 3


async def test_a_forget_that_fails_leaves_what_it_leaves(tmp_path: Path) -> None:
    class Refuses(ToySystem):
        async def forget(self, space: str, selection: Any, *, dry_run: bool) -> Any:
            raise error("INTERNAL", "the toy was told to")

    end = await forgot(Refuses(), tmp_path, modes=(Mode.MEMORY,))
    assert end.found == (
        "toy (en) by memory: 4 of 4 questions left something behind (answer 4, state 4, turns 4, words 4)",
    )
    assert mode_of(tmp_path, "memory")["n_forget_failed"] == 4


async def test_a_dialogue_that_cannot_be_stored_is_unmeasured(tmp_path: Path) -> None:
    toy = ToySystem()
    toy.add_fault = error("PROVIDER_UNREACHABLE", "no model")
    end = await forgot(toy, tmp_path, modes=(Mode.TURN,), patience_s=0.0)
    assert end.unmeasured[0].startswith("toy (en) by turn: 4 of 4 questions could not be measured")
    assert {row["blame"]["reason"] for row in lines(tmp_path / "out", "targets.jsonl")} == {"PROVIDER_UNREACHABLE"}


async def test_the_answer_should_now_be_that_there_is_no_such_information(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        prompt = body["messages"][-1]["content"]
        return "It is Rex" if "called Rex" in prompt else "There is no such information."

    async with serve_models(ModelServer(chat=answer)) as model:
        endpoint = ModelEndpoint(purpose="answer", url=model.url, model="m", key="k")
        await forgot(
            ToySystem(), tmp_path, replies=True, answerer=ModelSettings(endpoint=endpoint), seed=REX_IS_A_TARGET
        )
    for mode in MODES:
        replies = mode_of(tmp_path, mode)["replies"]
        assert (replies["n"], replies["right_before"]) == (4, 2)
        assert (replies["abstained_after"]["events"], replies["right_after"]["events"]) == (2, 0)
        assert replies["abstained_after"]["of"] == 2


async def test_the_command_ends_with_what_it_found(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", **facts())
    wanted = [
        (ToySystem(), 0, "toy: what is left after Forget"),
        (ForgetsTheVectorOnly(), 1, "left something behind"),
        (ToySystem(features=without(Feature.FORGET_TURNS)), 3, "toy declares no Forget by turn"),
    ]
    for place, (system, code, sentence) in enumerate(wanted):
        async with served_at(system, tmp_path / f"toy-{place}") as url:
            words = ["forgetting", "--url", url, "--system", "toy", "--data", data, "--by", "turn", "--patience", "0"]
            done = await asyncio.to_thread(invoke, *words, "--out", tmp_path / f"out-{place}")
        assert (done.exit_code, "Traceback" in done.output) == (code, False), done.output
        assert sentence in " ".join(done.output.split())


async def test_a_sample_of_dialogues_and_an_answer_model_are_asked_for_by_flags(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", **facts())
    async with served_at(ToySystem(), tmp_path / "toy") as url, serve_models(ModelServer()) as model:
        words = ["forgetting", "--url", url, "--system", "toy", "--data", data, "--by", "turn", "--sample-dialogues", 1]
        words += ["--answer-url", model.url, "--answer-model", "m", "--answer-key", "secret-key"]
        done = await asyncio.to_thread(invoke, *words, "--targets", 3, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    found = mode_of(tmp_path, "turn")
    assert (found["n_dialogues"], found["n_targets"], found["replies"]["n"]) == (1, 3, 3)
    assert len(model.requests) == 1 + 2 * 3, "a trial, then before and after"
    assert b"secret-key" not in b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*.json*"))


async def test_several_judges_see_the_answers_before_and_after(tmp_path: Path) -> None:
    data, judges = write_data(tmp_path / "d.jsonl", dialogues=("0",), **facts()), tmp_path / "judges.yaml"
    async with served_at(ToySystem(), tmp_path / "toy") as url, serve_models(ModelServer()) as model:
        model.chat = lambda body: '{"verdict": 2}' if body["model"] == "kind" else '{"verdict": 0}'
        judges.write_text(
            f'- {{name: a, url: "{model.url}", model: kind}}\n- {{name: b, url: "{model.url}", model: strict}}\n'
        )
        words = ["forgetting", "--url", url, "--system", "toy", "--data", data, "--by", "turn", "--targets", 2]
        words += ["--answer-url", model.url, "--answer-model", "m", "--judges", judges, "--out", tmp_path / "out"]
        done = await asyncio.to_thread(invoke, *words)
    assert done.exit_code == 0, done.output
    assert "Answers of toy, en turn: 2 right before; after, 0/2 say" in " ".join(done.output.split())
    for row in lines(tmp_path / "out", "targets.jsonl"):
        for reply in row["replies"]:
            assert (reply["correct"], reply["verdicts"]["b"]["label"]) == (True, 0)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--by", "meaning"], 2, "'meaning' is not one of"),
        (["--targets", "0"], 2, "--targets"),
        (["--judge-url", "http://x/v1", "--judge-model", "m"], 2, "--judge-url is for answers, and none are asked for"),
        (["--no-trial"], 2, "--trial is for answers, and none are asked for: give --answer-url"),
        ([], 2, "name a --system"),
        (["--system", "toy"], 2, "give --url"),
        (["--system", "toy", "--url", "grpc://127.0.0.1:9", "--data", "/nowhere.jsonl"], 2, "no file /nowhere.jsonl"),
        (["--system", "toy", "--url", "grpc://127.0.0.1:9", "--key-file", "/nowhere"], 2, "/nowhere: the key cannot"),
        (["--system", "toy", "--url", "grpc://127.0.0.1:9", "--call-timeout", "2"], 3, "cannot be used"),
    ],
)
def test_a_command_line_that_cannot_be_meant(tmp_path: Path, words: list[str], code: int, sentence: str) -> None:
    data = write_data(tmp_path / "d.jsonl", **facts())
    done = invoke("forgetting", "--data", data, "--out", tmp_path / "out", *words)
    assert (done.exit_code, "Traceback" in done.output) == (code, False), done.output
    assert sentence in " ".join(done.output.split())
    assert not (tmp_path / "out").exists(), "a suite that is refused leaves nothing"


def test_a_misspelt_variable_is_refused_and_those_of_a_run_are_known(tmp_path: Path) -> None:
    words = ["forgetting", "--data", "own", "--out", tmp_path / "out"]
    done = invoke(*words, env={"MEMDOCK_EVAL_URI": "x"})
    assert (done.exit_code, "there is no setting MEMDOCK_EVAL_URI" in done.output) == (2, True)


async def test_what_is_cancelled_in_between_gives_its_spaces_back(tmp_path: Path) -> None:
    class Waits(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            asked.set()
            await answers.wait()
            return await super().retrieve(space, query)

    asked, answers = asyncio.Event(), asyncio.Event()
    toy = Waits()
    suite = asyncio.create_task(forgot(toy, tmp_path, modes=(Mode.TURN,)))
    await asked.wait()
    assert any(toy.kept.values())
    suite.cancel()
    with pytest.raises(asyncio.CancelledError):
        await suite
    assert not any(toy.kept.values())


async def test_spaces_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    toy = ToySystem()
    assert await forgot(toy, tmp_path, modes=(Mode.TURN,), keep=True) == SuiteEnd()
    assert all(toy.kept.values())
    assert len(toy.kept) == 2


def test_the_help_teaches() -> None:
    done = invoke("forgetting", "--help")
    assert done.exit_code == 0
    for words in ("memdock-eval forgetting --url", "Exit code 0", "--targets", "neighbours", "--data", "late retry"):
        assert words in done.output
