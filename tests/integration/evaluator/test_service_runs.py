"""Runs over HTTP, by real server processes: started, followed, read, compared, cancelled, removed."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.evaluation import write_data
from support.evaluation_servers import EvaluationServer, Site
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import run_command, wait_until

PLAN = {"data": ["d.jsonl"], "baseline": ["oracle", "refusal"]}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(folder=tmp_path, results=str(tmp_path / "results"))
    write_data(made.data / "d.jsonl")
    return made


@pytest.fixture
def server(site: Site) -> Iterator[EvaluationServer]:
    with site.replicas("one") as (only,):
        yield only


def events(server: EvaluationServer, run_id: str, last: str = "") -> tuple[int, list[tuple[str, str, Any]]]:
    """The status, and every event to the end of the stream, as (name, id, data)."""
    headers = {"Last-Event-ID": last} if last else {}
    answer = server.ask("GET", f"/v1/runs/{run_id}/events", headers=headers)
    found = []
    for block in answer.body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "event" in lines:
            found.append((lines["event"], lines["id"], json.loads(lines["data"])))
    return answer.status, found


def test_a_run_is_started_followed_and_read(server: EvaluationServer, site: Site) -> None:
    run_id = server.start_run(PLAN)
    status, told = events(server, run_id)
    assert status == 200
    assert [name for name, _, _ in told][-1] == "end"
    assert told[-1][1:] == (
        "1.end",
        {"state": "completed", "attempt": 1, "exit_code": 0, "sentences": [], "cost": 0.0, "currency": "USD"}
        | {"ended": told[-1][2]["ended"]},
    )
    counts = [data["progress"] for name, _, data in told if name == "progress"][-1]
    assert {each["work"]: (each["done"], each["total"]) for each in counts}["answers judged"] == (16, 16)
    assert events(server, run_id, last="1.end") == (204, [])
    assert [name for name, _, _ in events(server, run_id, last="1.0")[1]] == ["progress", "end"]

    # The rows are those of the command, byte by byte, and its own checks agree.
    out = site.folder / "alone"
    words = ["--data", str(site.data / "d.jsonl"), "--baseline", "oracle", "--baseline", "refusal", "--out", str(out)]
    assert run_command("memdock-eval", "run", *words).code == 0
    rows = server.ask("GET", f"/v1/runs/{run_id}/outcomes.jsonl")
    assert rows.body == (out / "outcomes.jsonl").read_bytes()
    assert rows.headers["content-type"] == "application/x-ndjson"
    verified = server.ask("POST", f"/v1/runs/{run_id}/verify").json
    assert (verified["agrees"], verified["rows"]) == (True, 16)
    for name in ("manifest.json", "summary.json", "statistics.json"):
        assert json.loads(server.ask("GET", f"/v1/runs/{run_id}/{name}").body)
    manifest = server.ask("GET", f"/v1/runs/{run_id}/manifest.json").body.decode()
    assert str(site.folder) not in manifest
    assert '"d.jsonl"' in manifest
    tables = server.ask("GET", f"/v1/runs/{run_id}/tables").json
    assert "main.csv" in tables
    table = server.ask("GET", f"/v1/runs/{run_id}/tables/main.csv")
    assert (table.status, table.headers["content-type"].partition(";")[0]) == (200, "text/csv")
    assert server.ask("GET", f"/v1/runs/{run_id}/tables/..%2Fmanifest.json").status == 404
    assert server.ask("GET", f"/v1/runs/{run_id}/tables/manifest.exe").status == 400
    assert [run["run_id"] for run in server.ask("GET", "/v1/runs?state=completed").json["runs"]] == [run_id]
    assert server.ask("GET", "/v1/runs?state=running").json["runs"] == []
    assert server.process.stop() == 0


def test_the_report_is_shown_by_a_link_under_a_policy_of_its_own(server: EvaluationServer) -> None:
    run_id = server.start_run(PLAN)
    assert server.ask("GET", f"/v1/runs/{run_id}/report").status == 409
    server.ended(run_id)
    for lang in ("en", "ru"):
        link = server.ask("POST", f"/v1/runs/{run_id}/report/links?lang={lang}").json
        page = server.ask("GET", link["path"], key="-")
        assert page.status == 200
        assert f'<html lang="{lang}"' in page.body.decode()
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "sandbox allow-scripts" in policy
        assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
        another = run_id[:-1] + ("1" if run_id.endswith("0") else "0")
        assert server.ask("GET", link["path"].replace(run_id, another), key="-").status == 401
        assert server.ask("GET", link["path"][:-1], key="-").status == 401


def test_runs_are_compared(server: EvaluationServer) -> None:
    first, second = server.start_run(PLAN), server.start_run({**PLAN, "seed": 1})
    assert server.ask("GET", f"/v1/compare?a={first}&b={second}").status == 409
    server.ended(first)
    server.ended(second)
    found = server.ask("GET", f"/v1/compare?a={first}&b={second}").json
    assert found["plan"] == ["seed: 0 in the first, 1 in the second"] or "seed" in found["plan"][0]
    assert {each["first_system"] for each in found["differences"]} == {"baseline:oracle", "baseline:refusal"}
    crossed = f"/v1/compare?a={first}&b={second}&a_system=baseline:oracle&b_system=baseline:refusal"
    assert all(each["second_system"] == "baseline:refusal" for each in server.ask("GET", crossed).json["differences"])
    assert server.ask("GET", f"/v1/compare?a={first}&b={second}&a_system=x").json["errors"][0]["field"] == "b_system"
    unknown = server.ask("GET", f"/v1/compare?a={first}&b={second}&a_system=x&b_system=y")
    assert (unknown.status, unknown.json["reason"]) == (409, "RUNS_NOT_COMPARABLE")


def test_one_request_starts_one_run(server: EvaluationServer) -> None:
    first = server.start_run(PLAN, "mine-1")
    assert server.start_run(PLAN, "mine-1") == first
    assert server.start_run(PLAN, "mine-2") != first
    other = server.ask("POST", "/v1/runs", {**PLAN, "k": 3}, headers={"Idempotency-Key": "mine-1"})
    assert (other.status, other.json["reason"]) == (409, "REQUEST_ID_CONFLICT")
    pages = []
    token = ""
    for _ in range(2):
        page = server.ask("GET", f"/v1/runs?page_size=1&page_token={token}").json
        pages += [run["run_id"] for run in page["runs"]]
        token = page["next_page_token"]
    assert len(set(pages)) == 2
    assert token == ""


def test_an_estimate_asks_nothing(server: EvaluationServer) -> None:
    answer = server.ask(
        "POST", "/v1/estimates", b"data: d.jsonl\nbaseline: [oracle]\n", headers={"Content-Type": "application/yaml"}
    )
    assert answer.status == 200, answer.body
    assert (answer.json["questions"], answer.json["dialogues"]) == (8, 2)
    assert server.ask("GET", "/v1/runs").json["runs"] == []
    vain = server.ask("POST", "/v1/estimates", {**PLAN, "dialogue": ["none"]})
    assert (vain.status, "holds no question" in vain.json["detail"]) == (400, True)


@pytest.fixture
def slow_models(site: Site) -> Iterator[ModelServer]:
    """A model that hangs from its third call on; its key is the server's."""
    with models_in_thread(ModelServer(chat=lambda body: "Bublik")) as models:
        (site.folder / "m.key").write_text("sk-very-secret")
        (site.folder / "models.yaml").write_text(
            f"answerers: [{{name: slow, url: '{models.url}', model: gpt-4.1-mini, key_file: m.key}}]\n"
            f"judges: [{{name: strict, url: '{models.url}', model: gpt-4.1-mini}}]\n"
        )
        yield models


def test_a_run_is_cancelled_resumed_and_removed(site: Site, slow_models: ModelServer) -> None:
    slow_models.faults += ["hang"] * 100
    flags = ("--models", str(site.folder / "models.yaml"))
    with site.replicas("one", flags=flags) as (server,):
        run_id = server.start_run({**PLAN, "answerer": "slow", "trial": "false"})
        waiting = server.start_run(PLAN)
        wait_until(lambda: server.run(run_id)["state"] == "running", 30, "it runs")
        assert server.run(waiting)["state"] == "queued"
        wait_until(lambda: bool(slow_models.requests), 30, "the model is asked")
        assert server.ask("DELETE", f"/v1/runs/{run_id}").status == 409
        assert server.ask("POST", f"/v1/runs/{waiting}/cancel").json["state"] == "cancelled"
        assert server.ask("POST", f"/v1/runs/{run_id}/cancel").json["state"] == "cancelling"
        run = server.ended(run_id)
        assert (run["state"], run["exit_code"]) == ("cancelled", 1)
        assert server.ask("POST", f"/v1/runs/{run_id}/cancel").json["state"] == "cancelled"
        slow_models.faults.clear()
        resumed = server.ask("POST", f"/v1/runs/{run_id}/resume")
        assert (resumed.status, resumed.json["attempt"]) == (200, 2)
        assert server.ended(run_id)["state"] == "completed"
        assert server.ask("POST", f"/v1/runs/{run_id}/resume").status == 409
        assert server.ask("DELETE", f"/v1/runs/{run_id}").status == 204
        assert server.ask("GET", f"/v1/runs/{run_id}").status == 404
        left = [path for path in (site.folder / "results").rglob("*") if run_id in str(path)]
        assert left == []
        whole = "".join(path.read_text(errors="replace") for path in (site.folder / "results").rglob("*.json*"))
        assert "sk-very-secret" not in whole + server.process.log
        assert "Bublik" not in server.process.log


def test_the_ceiling_is_the_budget_and_a_resume_raises_it(site: Site, slow_models: ModelServer) -> None:
    flags = ("--models", str(site.folder / "models.yaml"), "--budget-ceiling", "5")
    with site.replicas("one", flags=flags) as (server,):
        more = server.ask("POST", "/v1/runs", {**PLAN, "budget": "6"})
        assert (more.status, more.json["errors"][0]["field"]) == (400, "budget")
        run_id = server.start_run({**PLAN, "answerer": "slow", "budget": 0.00001})
        run = server.ended(run_id)
        assert (run["state"], run["exit_code"]) == ("incomplete", 4)
        assert "the budget of 1e-05 USD is spent" in run["sentences"][-1]
        assert server.ask("POST", f"/v1/runs/{run_id}/resume", {"budget": 7}).status == 400
        assert server.ask("POST", f"/v1/runs/{run_id}/resume", {"budget": -1}).status == 400
        assert server.ask("POST", f"/v1/runs/{run_id}/resume", {"bugdet": 1}).status == 400
        assert server.ask("POST", f"/v1/runs/{run_id}/resume", {"budget": 1}).json["budget"] == 1
        done = server.ended(run_id)
        assert done["state"] == "completed"
        assert done["cost"] > 0


def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(site: Site, slow_models: ModelServer) -> None:
    slow_models.faults += ["hang"] * 100
    with site.replicas("one", flags=("--models", str(site.folder / "models.yaml"))) as (server,):
        run_id = server.start_run({**PLAN, "answerer": "slow", "trial": "false"})
        opened = _open_files(server)
        connections = []
        for _ in range(20):
            connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
            connection.request("GET", f"/v1/runs/{run_id}/events")
            assert connection.getresponse().read(6) == b"retry:"
            connections.append(connection)
        wait_until(lambda: server.metric("memdock_eval_watching") == 20, 10, "twenty watch")
        for connection in connections:
            assert connection.sock is not None
            connection.sock.close()
            connection.close()
        wait_until(lambda: server.metric("memdock_eval_watching") == 0, 10, "nobody watches")
        wait_until(lambda: _open_files(server) <= opened + 2, 10, "connections are closed")
        # A stream does not hold up the end of the server, and a run of its goes back to the queue.
        stream = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
        stream.request("GET", f"/v1/runs/{run_id}/events")
        answer = stream.getresponse()
        assert server.process.stop() == 0
        assert b"event: state" in answer.read()
        stream.close()
    with site.replicas("two", flags=("--models", str(site.folder / "models.yaml"))) as (server,):
        slow_models.faults.clear()
        assert server.ended(run_id)["state"] == "completed"
        assert server.run(run_id)["attempt"] == 1


def _open_files(server: EvaluationServer) -> int:
    process = server.process._process
    assert process is not None
    return psutil.Process(process.pid).num_fds()
