"""`memdock-eval leaks` on systems that are really served: sound ones pass, mutants are caught at their moment."""

import asyncio
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from memdock.errors import error
from memdock.system import System
from memdock.types import Feature
from memdock_evaluator.leaks.rows import Moment
from memdock_evaluator.leaks.settings import LeakSettings
from memdock_evaluator.leaks.suite import NO_FORGET, NO_RESTART, leak_suite
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.suites.ending import SuiteEnd
from support.mutants import (
    AnswersFromOthersWhenEmpty,
    FindsNothing,
    RemembersTheLastCaller,
    ResetsByPrefix,
    ShowsEverybody,
)
from support.processes import free_port
from support.suites import RestartByHand, invoke, lines, quiet, served_at, summary
from support.toy_process import ToyProcess
from support.toys import ToySystem, without

NOTHING = (sys.executable, "-c", "")


def asked(
    out: Path, url: str, *, system: str = "toy", pairs: int = 2, restart: tuple[str, ...] = NOTHING, **run: Any
) -> LeakSettings:
    """A suite over two pairs a language, impatient so that a test is quick."""
    fields = {"patience_s": 0.2, "call_timeout_s": 10.0, "flush_timeout_s": 10.0, "concurrency": 16, **run}
    settings = RunSettings(data=(), out=str(out), url=url, systems=(system,), ks=(1,), **fields)
    return LeakSettings(run=settings, languages=("ru", "en"), pairs=pairs, restart_command=restart)


async def leaked(system: System, tmp_path: Path, *, name: str = "out", **more: Any) -> SuiteEnd:
    async with served_at(system, tmp_path / f"toy-{name}") as url:
        return await leak_suite(asked(tmp_path / name, url, **more), quiet(), quiet())


def moments(tmp_path: Path, name: str = "out") -> Any:
    return summary(tmp_path / name)["systems"]["toy"]


def leaks(tmp_path: Path) -> dict[str, int]:
    return {moment: each["leaks"]["events"] for moment, each in moments(tmp_path).items() if each["leaks"]["events"]}


async def test_a_sound_system_leaks_at_no_moment(tmp_path: Path) -> None:
    toy = ToySystem()
    assert await leaked(toy, tmp_path) == SuiteEnd()
    assert sorted(moments(tmp_path)) == sorted(Moment)
    for each in moments(tmp_path).values():
        assert (each["n_trials"], each["n_void"], each["n_unmeasured"], each["taken"]) == (48, 0, 0, 0)
        assert (each["leaks"]["of"], each["leaks"]["clusters"]) == (48, 4)
        assert each["leaks"]["bound"] == pytest.approx(1 - 0.05 ** (1 / 48)), "Clopper and Pearson, none of 48"
    assert not any(toy.kept.values()), "every space is given back"
    assert toy.most_spaces_at_once > 1, "under concurrency writers met"


async def test_two_suites_write_the_same_trials(tmp_path: Path) -> None:
    for name in ("one", "two"):
        await leaked(ToySystem(), tmp_path, name=name, pairs=1)
    for file in ("trials.jsonl", "summary.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


async def test_a_search_through_all_spaces_leaks_always(tmp_path: Path) -> None:
    end = await leaked(ShowsEverybody(), tmp_path)
    assert leaks(tmp_path)["at rest"] == leaks(tmp_path)["after a restart"] == 48
    assert set(leaks(tmp_path)) == set(Moment)
    assert "toy at rest: 48 of 48 trials leaked (question 48)" in end.found
    [row, *_] = lines(tmp_path / "out", "trials.jsonl")
    assert (row["asker"], row["owner"], row["leaked_by"]) == ("0-a", "0-b", ["question"])
    assert row["leaked_from"] == ["en/0-b", "en/1-a", "en/1-b"], "a query in one language has no words of the other"


async def test_a_race_leaks_under_concurrency_alone(tmp_path: Path) -> None:
    end = await leaked(RemembersTheLastCaller(), tmp_path, pairs=1, restart=())
    assert list(leaks(tmp_path)) == ["under concurrency"]
    assert len(end.found) == 1


async def test_what_leaks_after_a_restart_alone_is_found_there(tmp_path: Path) -> None:
    restarted = tmp_path / "restarted"
    touch = (sys.executable, "-c", f"open({str(restarted)!r}, 'w')")
    await leaked(ShowsEverybody(when=restarted), tmp_path, restart=touch)
    assert set(leaks(tmp_path)) == {"after a restart", "after Forget", "after Reset"}


async def test_a_fall_back_to_everybody_leaks_after_reset(tmp_path: Path) -> None:
    await leaked(AnswersFromOthersWhenEmpty(), tmp_path)
    assert leaks(tmp_path)["after Reset"] == 24
    assert "at rest" not in leaks(tmp_path)
    hit = [
        row for row in lines(tmp_path / "out", "trials.jsonl") if row["moment"] == "after Reset" and row["leaked_by"]
    ]
    assert {row["asker"][-1] for row in hit} == {"a"}, "those who were reset"


async def test_a_reset_that_takes_the_neighbours_space_is_found(tmp_path: Path) -> None:
    end = await leaked(ResetsByPrefix(), tmp_path)
    assert leaks(tmp_path) == {}
    assert end.found == ("toy after Reset: 24 canaries of another user went",)
    assert moments(tmp_path)["after Reset"]["n_void"] == 24, "and those trials show nothing any more"


async def test_where_no_user_finds_its_own_nothing_is_said(tmp_path: Path) -> None:
    end = await leaked(FindsNothing(), tmp_path)
    assert end.found == ()
    assert len(end.unmeasured) == len(Moment)
    for each in moments(tmp_path).values():
        assert (each["n_void"], each["leaks"]["of"], each["leaks"]["bound"]) == (48, 0, None)


async def test_what_was_not_asked_is_said(tmp_path: Path) -> None:
    toy = ToySystem(features=without(Feature.FORGET_TURNS, Feature.FORGET_SESSIONS, Feature.LIST_MEMORIES))
    assert await leaked(toy, tmp_path, restart=()) == SuiteEnd()
    assert set(moments(tmp_path)) == {"at rest", "under concurrency", "after Reset"}
    assert summary(tmp_path / "out")["skipped"]["toy"] == {"after a restart": NO_RESTART, "after Forget": NO_FORGET}


@pytest.mark.parametrize(
    ("reason", "outcome"), [("INTERNAL", "system_error"), ("STORE_UNREACHABLE", "infrastructure_error")]
)
async def test_a_trial_that_fails_is_unmeasured_and_told_apart(tmp_path: Path, reason: str, outcome: str) -> None:
    class Broken(ToySystem):
        async def retrieve(self, space: str, query: Any) -> Any:
            if "garden gate" in query.text:
                raise error(reason, "the toy was told to")
            return await super().retrieve(space, query)

    end = await leaked(Broken(), tmp_path, pairs=1, restart=(), patience_s=0.0)
    assert end.unmeasured[0] == "toy at rest: 2 of 24 trials failed, their rows say why"
    blamed = [row for row in lines(tmp_path / "out", "trials.jsonl") if row["blame"]]
    assert {(row["language"], row["fact"], row["blame"]["outcome"]) for row in blamed} == {
        ("en", "gate-number", outcome)
    }
    assert moments(tmp_path)["at rest"]["leaks"]["of"] == 22


async def test_turns_that_are_refused_are_told_and_void_the_trials(tmp_path: Path) -> None:
    toy = ToySystem()
    toy.failing = {"s1-t0"}
    said = io.StringIO()
    async with served_at(toy, tmp_path / "toy") as url:
        end = await leak_suite(asked(tmp_path / "out", url, pairs=1), Console(file=said, width=200), quiet())
    assert end == SuiteEnd()
    assert {each["n_void"] for each in moments(tmp_path).values()} == {4}
    assert "toy: dialogue 0-a (ru): 1 turn not stored, the first with PROVIDER_PROTOCOL_ERROR" in said.getvalue()


async def test_a_leak_counts_although_other_trials_fail(tmp_path: Path) -> None:
    class Broken(ShowsEverybody):
        async def list_memories(self, space: str, *, after: str, limit: int) -> Any:
            raise error("INTERNAL", "the toy was told to")

    end = await leaked(Broken(), tmp_path, pairs=1)
    assert any("under concurrency" in sentence for sentence in end.found), "seen before the list failed"
    assert len(end.unmeasured) == len(Moment)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ((sys.executable, "-c", "raise SystemExit('no such container')"), "ended with 1: no such container"),
        (("/nowhere/restart",), "cannot be started (No such file or directory)"),
    ],
)
async def test_a_restart_that_fails_ends_the_suite_with_what_it_has(
    tmp_path: Path, command: tuple[str, ...], sentence: str
) -> None:
    toy = ToySystem()
    end = await leaked(toy, tmp_path, restart=command)
    assert (end.found, sentence in end.unmeasured[0]) == ((), True), end
    assert set(moments(tmp_path)) == {"at rest", "under concurrency"}
    assert summary(tmp_path / "out")["stopped"] == end.unmeasured[0]
    assert not any(toy.kept.values()), "every space is given back all the same"


async def test_a_process_that_was_killed_and_started_again_leaks_nothing(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    folder = tmp_path / "toy"
    folder.mkdir()
    toy = ToyProcess(folder, "--grpc", address)
    await toy.start()
    kills = []

    async def restart() -> None:
        await toy.kill()
        kills.append(True)
        await toy.start()

    by_hand = RestartByHand(tmp_path)
    url, name = f"grpc://{address}", "durable-toy"
    settings = asked(tmp_path / "out", url, system=name, pairs=1, restart=by_hand.command, patience_s=10.0)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(by_hand.serve(restart))
            suite = tasks.create_task(leak_suite(settings, quiet(), quiet()))
    finally:
        await toy.kill()
    assert (suite.result(), kills) == (SuiteEnd(), [True])
    assert summary(tmp_path / "out")["systems"][name]["after a restart"]["leaks"]["of"] == 24


async def test_the_command_ends_with_what_it_found(tmp_path: Path) -> None:
    wanted = [
        (ToySystem(), [], 0, "at rest 24 0 0 0 11.7"),
        (ShowsEverybody(), [], 1, "toy at rest: 24 of 24 trials leaked"),
        (FindsNothing(), [], 3, "no user finds its own canaries"),
        (ToySystem(), ["--only", "en"], 0, "at rest 12 0 0 0 22.1"),
        (ToySystem(), ["--restart-command", "'"], 2, "No closing quotation"),
    ]
    for place, (system, flags, code, sentence) in enumerate(wanted):
        async with served_at(system, tmp_path / f"toy-{place}") as url:
            words = ["leaks", "--url", url, "--system", "toy", "--pairs", "1", "--patience", "0", *flags]
            done = await asyncio.to_thread(invoke, *words, "--out", tmp_path / f"out-{place}")
        assert (done.exit_code, "Traceback" in done.output) == (code, False), done.output
        assert sentence in " ".join(done.output.split())
        assert (code == 2) != (tmp_path / f"out-{place}").exists()


def test_the_help_teaches() -> None:
    done = invoke("leaks", "--help")
    assert done.exit_code == 0
    for words in ("memdock-eval leaks --url", "Exit code 0", "--restart-command", "void", "--pairs"):
        assert words in done.output
