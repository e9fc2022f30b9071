"""The OpenAPI document that the service serves is true: every answer is as it says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.documented import Document
from support.evaluation import write_data
from support.evaluation_servers import Answered, EvaluationServer, Site

PLAN = {"data": ["d.jsonl"], "baseline": ["oracle"]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvaluationServer]:
    folder = tmp_path_factory.mktemp("site")
    site = Site(folder=folder, results=str(folder / "results"))
    write_data(site.data / "d.jsonl")
    with site.replicas("one") as (only,):
        yield only


@pytest.fixture(scope="module")
def document(server: EvaluationServer) -> Document:
    answer = server.ask("GET", "/openapi.json")
    assert answer.json["openapi"].startswith("3.1")
    return Document(answer.json)


def wrong_in(document: Document, verb: str, path: str, answer: Answered) -> list[str]:
    """Where an answer is not as the document says."""
    operation = document.document["paths"][path][verb.lower()]
    described = operation["responses"].get(str(answer.status), operation["responses"]["default"])
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if answer.status == 204:
        return [] if "204" in operation["responses"] and not answer.body else ["204 is not described"]
    if kind not in described["content"]:
        return [f"{kind} is not described for {answer.status}"]
    schema = described["content"][kind].get("schema")
    return document.errors(answer.json, schema) if schema else []


def test_every_answer_is_as_described(server: EvaluationServer, document: Document) -> None:
    run_id = server.start_run(PLAN)
    open_run = server.ask("GET", f"/v1/runs/{run_id}")
    assert wrong_in(document, "GET", "/v1/runs/{run_id}", open_run) == []
    server.ended(run_id)
    one = "/v1/runs/{run_id}"
    calls = [
        ("GET", "/v1/offer", None, 200),
        ("POST", "/v1/estimates", PLAN, 200),
        ("POST", "/v1/estimates", {**PLAN, "k": 0}, 400),
        ("POST", "/v1/runs", PLAN, 201),
        ("GET", "/v1/runs", None, 200),
        ("GET", one, None, 200),
        ("GET", f"{one}/events", None, 200),
        ("GET", f"{one}/report", None, 200),
        ("POST", f"{one}/report/links", None, 201),
        ("GET", f"{one}/manifest.json", None, 200),
        ("GET", f"{one}/summary.json", None, 200),
        ("GET", f"{one}/statistics.json", None, 200),
        ("GET", f"{one}/outcomes.jsonl", None, 200),
        ("GET", f"{one}/timings.jsonl", None, 200),
        ("GET", f"{one}/tables", None, 200),
        ("POST", f"{one}/verify", None, 200),
        ("POST", f"{one}/resume", {}, 409),
        ("POST", f"{one}/cancel", None, 200),
        ("DELETE", one, None, 204),
        ("DELETE", one, None, 404),
    ]
    for verb, path, body, status in calls:
        answer = server.ask(verb, path.replace("{run_id}", run_id), body)
        assert answer.status == status, (verb, path, answer.body)
        assert wrong_in(document, verb, path, answer) == [], (verb, path)
    assert "422" not in str(document.document["paths"])


def test_two_runs_compared_are_as_described(server: EvaluationServer, document: Document) -> None:
    first, second = server.start_run(PLAN), server.start_run({**PLAN, "seed": 2})
    for run_id in (first, second):
        server.ended(run_id)
    answer = server.ask("GET", f"/v1/compare?a={first}&b={second}")
    assert answer.status == 200
    assert wrong_in(document, "GET", "/v1/compare", answer) == []
    table = server.ask("GET", f"/v1/runs/{first}/tables/main.md")
    assert table.body.startswith(b"|") or b"|" in table.body


def test_a_page_of_another_site_may_not_call_where_nobody_is_asked_for_a_key(server: EvaluationServer) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example:7480"}, {"Origin": "null"}):
        answer = server.ask("GET", "/v1/runs", headers=headers)
        assert (answer.status, answer.json["reason"]) == (403, "CALL_FORBIDDEN"), headers
    assert server.ask("GET", "/v1/runs", headers={"Origin": server.url}).status == 200


def test_the_files_of_the_page_are_in_the_package() -> None:
    from importlib.resources import files

    page = files("memdock_evaluator.service") / "page"
    assert sorted(each.name for each in page.iterdir()) == ["page.css", "page.html", "page.js"]
    assert "http" not in Path(str(page / "page.html")).read_text()
