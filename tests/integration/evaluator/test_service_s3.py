"""Replicas over S3: marks by conditional writes, a run that goes on after a kill, an outage that is survived."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memdock_evaluator.service.book import Book, Place
from memdock_evaluator.service.documents import Asked, new_run_id, now
from memdock_evaluator.service.marks import Marks
from support.evaluation import write_data
from support.evaluation_servers import Site
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import wait_until
from support.s3 import BUCKET, S3, s3_server


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    with s3_server(tmp_path) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        assert os.environ["AWS_ENDPOINT_URL_S3"]
        yield server


def test_of_many_who_take_a_run_one_does(s3: S3) -> None:
    marks = Marks(f"s3://{BUCKET}/here")
    run_id = Book(marks).add(Asked(run_id=new_run_id(), tenant="t", key_id="", created=now(), plan={"k": "1"}))
    assert Book(marks).tenants() == ["t"]
    assert Book(marks).place("t", run_id) == Place(tenant="t", run_id=run_id, attempt=1)
    with ThreadPoolExecutor(8) as pool:
        for number in range(3):
            at = Place(tenant="t", run_id=run_id, attempt=1, taken=number)
            assert list(pool.map(lambda _, at=at: Book(marks).take(at), range(8))).count(True) == 1
    place = Book(marks).place("t", run_id)
    assert place is not None
    assert place.taken == 3
    Book(marks).remove(place)
    assert Book(marks).places("t") == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_goes_on_in_another_replica_and_an_outage_is_survived(s3: S3, tmp_path: Path) -> None:
    site = Site(folder=tmp_path, results=f"s3://{BUCKET}/site", flags=("--models", str(tmp_path / "models.yaml")))
    write_data(site.data / "d.jsonl", dialogues=[str(number) for number in range(4)])
    hangs_from = [10**9]

    def chat(body: object) -> str:
        if len(models.requests) >= hangs_from[0]:
            models.faults += ["hang"] * 200
        return f"{len(str(body)) % 5} Bublik"

    with models_in_thread(ModelServer(chat=chat)) as models:
        (tmp_path / "models.yaml").write_text(f"answerers: [{{name: m, url: '{models.url}', model: gpt-4.1-mini}}]\n")
        plan = {"data": "d.jsonl", "baseline": ["oracle", "closed-book"], "answerer": "m"}
        with site.replicas("one", "two") as (one, two):
            first = one.start_run(plan)
            assert two.ended(first)["state"] == "completed"
            wanted = two.ask("GET", f"/v1/runs/{first}/outcomes.jsonl").body
            assert wanted.count(b"\n") == 32

            hangs_from[0] = len(models.requests) + 12
            second = one.start_run(plan)
            wait_until(lambda: bool(models.faults), 60, "the run is in its middle")
            holder, other = (one, two) if one.metric("memdock_eval_runs_running") else (two, one)
            holder.process.kill()
            hangs_from[0] = 10**9
            models.faults.clear()
            assert other.ended(second, within_s=120)["state"] == "completed"
            assert other.ask("GET", f"/v1/runs/{second}/outcomes.jsonl").body == wanted
            assert other.ask("POST", f"/v1/runs/{second}/verify").json["agrees"]
            assert other.ask("GET", f"/v1/compare?a={first}&b={second}").status == 200

            s3.gate.shut()
            wait_until(lambda: other.ask("GET", "/readyz").status == 503, 60, "not ready")
            assert other.ask("GET", "/livez").status == 200
            s3.gate.open()
            wait_until(lambda: other.ask("GET", "/readyz").status == 200, 60, "ready again")
            assert len(other.ask("GET", "/v1/runs").json["runs"]) == 2
            assert other.ask("DELETE", f"/v1/runs/{second}").status == 204
            assert [name for name in s3.files.find(f"{BUCKET}/site") if second in name] == []
