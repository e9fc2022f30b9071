"""Several replicas over one results address: any serves any run, one carries it out, another goes on for one gone."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memdock_evaluator.service.book import Book, Place
from memdock_evaluator.service.documents import Asked, Beat, End, new_run_id, now
from memdock_evaluator.service.marks import Marks
from support.evaluation import write_data
from support.evaluation_servers import EvaluationServer, Site
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import wait_until

PLAN = {"data": ["d.jsonl"], "baseline": ["oracle", "closed-book"], "answerer": "m", "judge": "j"}
VERDICT = '{"reason": "as it is", "verdict": 3}'


class Models:
    """Answers from the question alone; after `calls` calls every call hangs, until `go`."""

    def __init__(self) -> None:
        self.calls: int | None = None
        self.server = ModelServer(chat=self._chat)

    def _chat(self, body: dict[str, Any]) -> str:
        if self.calls is not None and len(self.server.requests) >= self.calls:
            self.server.faults += ["hang"] * 500
        said = str(body["messages"])
        return VERDICT if "verdict" in said else f"{len(said) % 7} Bublik"

    def go(self) -> None:
        """No call hangs any more."""
        self.calls = None
        self.server.faults.clear()


@pytest.fixture
def models(tmp_path: Path) -> Iterator[Models]:
    scripted = Models()
    with models_in_thread(scripted.server) as server:
        (tmp_path / "models.yaml").write_text(
            f"answerers: [{{name: m, url: '{server.url}', model: gpt-4.1-mini}}]\n"
            f"judges: [{{name: j, url: '{server.url}', model: gpt-4.1-mini}}]\n"
        )
        yield scripted


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(folder=tmp_path, results=str(tmp_path / "results"), flags=("--models", str(tmp_path / "models.yaml")))
    write_data(made.data / "d.jsonl", dialogues=[str(number) for number in range(8)])
    return made


def running_in(servers: list[EvaluationServer]) -> list[EvaluationServer]:
    return [server for server in servers if server.metric("memdock_eval_runs_running")]


def outcomes(server: EvaluationServer, run_id: str) -> bytes:
    answer = server.ask("GET", f"/v1/runs/{run_id}/outcomes.jsonl")
    assert answer.status == 200
    return answer.body


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_whose_replica_is_killed_goes_on_in_another_to_the_same_bytes(site: Site, models: Models) -> None:
    with site.replicas("one", "two") as servers:
        undisturbed = servers[0].start_run(PLAN)
        assert servers[1].ended(undisturbed)["state"] == "completed"
        wanted = outcomes(servers[1], undisturbed)

        models.calls = len(models.server.requests) + 40
        run_id = servers[0].start_run(PLAN)
        wait_until(lambda: bool(models.server.faults), 60, "the run is in its middle")
        (holder,) = running_in(servers)
        (other,) = [server for server in servers if server is not holder]
        assert other.run(run_id)["state"] == "running"
        holder.process.kill()
        asked = len(models.server.requests)
        models.go()
        run = other.ended(run_id)
        assert (run["state"], run["attempt"], run["exit_code"]) == ("completed", 1, 0)
        assert outcomes(other, run_id) == wanted
        assert other.ask("POST", f"/v1/runs/{run_id}/verify").json["agrees"]
        assert other.metric("memdock_eval_runs_taken_over_total") == 1
        # What was answered before is not asked again: the whole run takes 128 calls and two small questions first.
        assert 0 < len(models.server.requests) - asked < 128
        # The one that was killed comes back, and serves what the other has done.
        holder.process.start()
        assert outcomes(holder, run_id) == wanted


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_replica_that_stood_still_leaves_the_run_to_who_took_over(site: Site, models: Models) -> None:
    with site.replicas("one", "two") as servers:
        models.calls = 20
        run_id = servers[0].start_run(PLAN)
        wait_until(lambda: bool(models.server.faults), 60, "the run is in its middle")
        (holder,) = running_in(servers)
        (other,) = [server for server in servers if server is not holder]
        process = holder.process._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)  # its run's process lives on, and holds the folder
        try:
            wait_until(lambda: other.metric("memdock_eval_runs_taken_over_total") == 1, 30, "the other takes over")
        finally:
            os.kill(process.pid, signal.SIGCONT)
        wait_until(lambda: not running_in([holder]), 60, "the first has found that the run is another's")
        models.go()
        run = other.ended(run_id)
        assert run["state"] == "completed", run
        assert other.ask("POST", f"/v1/runs/{run_id}/verify").json["agrees"]
        assert '"event":"run_lost"' in holder.process.log


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_runs_wait_for_a_place_and_each_is_carried_out_once(site: Site, models: Models) -> None:
    with site.replicas("one", "two") as servers:
        run_ids = [servers[number % 2].start_run(PLAN, f"r{number}") for number in range(6)]
        assert [servers[0].ended(run_id)["state"] for run_id in run_ids] == ["completed"] * 6
        assert len({outcomes(servers[1], run_id) for run_id in run_ids}) == 1
        taken = "".join(server.process.log for server in servers).count('"event":"run_taken"')
        assert taken == 6
        listed = servers[1].ask("GET", "/v1/runs").json["runs"]
        assert {run["run_id"] for run in listed} == set(run_ids)


def test_readiness_follows_the_results_address(site: Site, models: Models) -> None:
    with site.replicas("one") as (server,):
        assert server.ask("GET", "/readyz").status == 200
        results = Path(site.results)
        results.rename(results.with_name("away"))
        wait_until(lambda: server.ask("GET", "/readyz").status == 503, 10, "not ready")
        answer = server.ask("GET", "/readyz")
        assert answer.json["reason"] == "RESULTS_UNREACHABLE"
        assert server.ask("GET", "/livez").status == 200
        results.with_name("away").rename(results)
        wait_until(lambda: server.ask("GET", "/readyz").status == 200, 10, "ready")


def test_of_many_who_take_a_run_one_does(tmp_path: Path) -> None:
    marks = Marks(str(tmp_path))
    run_id = Book(marks).add(Asked(run_id=new_run_id(), tenant="t", key_id="", created=now(), plan={"k": "1"}))
    place = Book(marks).place("t", run_id)
    assert place == Place(tenant="t", run_id=run_id, attempt=1)
    with ThreadPoolExecutor(32) as pool:
        for number in range(20):
            at = Place(tenant="t", run_id=run_id, attempt=1, taken=number)
            took = list(pool.map(lambda _, at=at: Book(marks).take(at), range(32)))
            assert took.count(True) == 1
    assert not [name for name in (tmp_path / "service/t").iterdir() if "unfinished" in name.name]


def test_a_run_that_is_being_removed_is_taken_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that looks between two of the deletions sees a run that has ended, or none."""
    marks = Marks(str(tmp_path))
    book = Book(marks)
    run_id = book.add(Asked(run_id=new_run_id(), tenant="t", key_id="", created=now(), plan={"k": "1"}))
    for attempt in (1, 2):
        book.ask("t", run_id, attempt, None)
        place = Place(tenant="t", run_id=run_id, attempt=attempt)
        assert book.take(place)
        book.beat(place, 1, Beat())
        assert book.end(place, End(state="completed", at=now(), token="x"))
    delete, seen = Marks.delete, []

    def look(self: Marks, name: str) -> None:
        delete(self, name)
        seen.extend(Book(marks).places("t"))

    monkeypatch.setattr(Marks, "delete", look)
    place = book.place("t", run_id) or place
    book.remove(place)
    assert len(seen) > 4
    assert all(one.ended for one in seen)
    assert book.places("t") == []
    assert not list((tmp_path / "service" / "t").iterdir())
