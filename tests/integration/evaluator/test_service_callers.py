"""Who may do what: keys as the gateway's, tenants apart, and nothing in a plan that leads out of what is offered."""

import re
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdock.key_file import editing
from memdock.keys import create_key, utc_now
from support.certificates import make_certificates
from support.evaluation import write_data
from support.evaluation_servers import EvaluationServer, Site
from support.processes import run_command, wait_until

PLAN = {"data": ["d.jsonl"], "baseline": ["refusal"]}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    made = Site(folder=folder, results=str(folder / "results"))
    write_data(made.data / "d.jsonl")
    write_data(folder / "outside.jsonl")
    (made.data / "link.jsonl").symlink_to(folder / "outside.jsonl")
    (made.data / "inside.jsonl").symlink_to(made.data / "d.jsonl")
    (made.data / "more").mkdir()
    write_data(made.data / "more" / "e.jsonl")
    (made.data / ".hidden").write_text("{}")
    made.keys.update(
        ann=made.key("ann"),
        reader=made.key("ann", "--call", "ReadRuns"),
        narrow=made.key("ann", "--system", "rag-dense"),
        bob=made.key("bob"),
        gone=made.key("ann"),
    )
    return made


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[EvaluationServer]:
    flags = ("--gateway", "grpc://127.0.0.1:1", "--most-open", "3")
    with site.replicas("one", flags=flags, key=site.keys["ann"]) as (only,):
        yield only


def refused(server: EvaluationServer, plan: Any, **more: Any) -> tuple[int, str, str]:
    """Status, field and description."""
    answer = server.ask("POST", "/v1/runs", plan, **more)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json
    assert problem["request_id"] == answer.headers["x-request-id"]
    error = problem["errors"][0] if problem["errors"] else {"field": "", "description": problem["detail"]}
    return answer.status, error["field"], error["description"]


CALLS = (
    ("GET", "/v1/offer"),
    ("POST", "/v1/estimates"),
    ("POST", "/v1/runs"),
    ("GET", "/v1/runs"),
    ("GET", "/v1/runs/{run}"),
    ("POST", "/v1/runs/{run}/resume"),
    ("POST", "/v1/runs/{run}/cancel"),
    ("DELETE", "/v1/runs/{run}"),
    ("GET", "/v1/runs/{run}/events"),
    ("GET", "/v1/runs/{run}/report"),
    ("POST", "/v1/runs/{run}/report/links"),
    ("GET", "/v1/runs/{run}/manifest.json"),
    ("GET", "/v1/runs/{run}/summary.json"),
    ("GET", "/v1/runs/{run}/statistics.json"),
    ("GET", "/v1/runs/{run}/outcomes.jsonl"),
    ("GET", "/v1/runs/{run}/timings.jsonl"),
    ("GET", "/v1/runs/{run}/tables"),
    ("GET", "/v1/runs/{run}/tables/main.csv"),
    ("POST", "/v1/runs/{run}/verify"),
    ("GET", "/v1/compare?a={run}&b={run}"),
)


@pytest.fixture(scope="module")
def done(server: EvaluationServer) -> str:
    run_id = server.start_run(PLAN)
    assert server.ended(run_id)["state"] == "completed"
    return run_id


def test_every_call_of_the_document_asks_for_a_key(server: EvaluationServer, done: str) -> None:
    document = server.ask("GET", "/openapi.json").json
    described = {(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs}
    assert described == {
        (verb, path.partition("?")[0].replace("{run}", "{run_id}").replace("main.csv", "{name}"))
        for verb, path in CALLS
    }
    for verb, path in CALLS:
        answer = server.ask(verb, path.replace("{run}", done), key="")
        wrong = server.ask(verb, path.replace("{run}", done), key=server.key[:-1] + "x")
        assert (answer.status, answer.json["reason"]) == (401, "CREDENTIAL_MISSING"), path
        assert answer.headers["www-authenticate"] == "Bearer"
        assert (wrong.status, wrong.json["reason"]) == (401, "CREDENTIAL_INVALID"), path


def test_a_tenant_sees_nothing_of_another(server: EvaluationServer, site: Site, done: str) -> None:
    for verb, path in CALLS:
        if "{run}" in path:
            answer = server.ask(verb, path.replace("{run}", done), key=site.keys["bob"])
            assert (answer.status, answer.json["reason"]) == (404, "RUN_NOT_FOUND"), path
    assert server.ask("GET", "/v1/runs", key=site.keys["bob"]).json["runs"] == []
    for odd in ("..", "%2e%2e", "ann", "20200101T000000-00000000", "x" * 60):
        assert server.ask("GET", f"/v1/runs/{odd}", key=site.keys["bob"]).status == 404
    # The ticket of a link is of one run of one tenant.
    link = server.ask("POST", f"/v1/runs/{done}/report/links").json["path"]
    assert server.ask("GET", link, key="").status == 200
    assert server.ask("GET", link.replace("ann", "bob"), key="").status == 401
    late = re.sub(r":(\d+):", ":1:", link)
    assert server.ask("GET", late, key="").json["reason"] == "CREDENTIAL_INVALID"


def test_a_key_does_what_it_was_made_for(server: EvaluationServer, site: Site, done: str) -> None:
    reader = site.keys["reader"]
    assert server.ask("GET", f"/v1/runs/{done}", key=reader).status == 200
    assert server.ask("GET", "/v1/offer", key=reader).json["may"] == ["ReadRuns"]
    for verb, path in (("POST", "/v1/runs"), ("POST", f"/v1/runs/{done}/resume"), ("DELETE", f"/v1/runs/{done}")):
        answer = server.ask(verb, path, PLAN if path == "/v1/runs" else None, key=reader)
        assert (answer.status, answer.json["reason"]) == (403, "CALL_FORBIDDEN"), path
    other = server.ask("POST", "/v1/runs", {**PLAN, "system": "rag-hybrid"}, key=site.keys["narrow"])
    assert (other.status, other.json["reason"]) == (403, "SYSTEM_FORBIDDEN")
    twice = server.ask("GET", "/v1/runs", headers={"authorization": "Bearer x, Bearer y"}, key="")
    assert twice.status == 401


def test_a_key_ends_when_it_expires_or_is_revoked(server: EvaluationServer, site: Site) -> None:
    assert server.ask("GET", "/v1/runs", key=site.keys["gone"]).status == 200
    key_id = site.keys["gone"].split("_")[1]
    assert run_command("memdock", "keys", "revoke", "--file", site.keys_file, key_id).code == 0
    now = utc_now()
    with editing(site.keys_file) as file:
        key, expired = create_key(tenant="ann", systems=["*"], spaces=["*"], calls=["*"], now=now, lifetime=now - now)
        file.keys[key.key_id] = key
    wait_until(lambda: server.ask("GET", "/v1/runs", key=site.keys["gone"]).status == 401, 10, "revoked")

    def said() -> tuple[int, str]:
        answer = server.ask("GET", "/v1/runs", key=expired)
        return answer.status, answer.json["reason"]

    # Until the server has read the file with that key it knows no such key.
    wait_until(lambda: said() != (401, "CREDENTIAL_INVALID"), 10, "the second change is read")
    assert said() == (401, "CREDENTIAL_EXPIRED")


@pytest.mark.parametrize(
    "field",
    sorted(
        {
            "url",
            "key",
            "key-file",
            "out",
            "estimate",
            "prices",
            "plan",
            "profile",
            "keep",
            "judges",
            "rubric",
            "progress",
            "answer-url",
            "answer-model",
            "answer-key",
            "answer-key-file",
            "answer-prompt",
            "answer-temperature",
            "judge-url",
            "judge-model",
            "judge-key",
            "judge-key-file",
            "judge-form",
            "judge-prompt",
            "judge-temperature",
            "judge-seed",
            "judge-tries",
            "concurrency",
            "parallel-questions",
            "model-concurrency",
            "model-timeout",
            "model-tries",
            "call-timeout",
            "flush-timeout",
            "patience",
        }
    ),
)
def test_what_is_the_servers_own_is_refused(server: EvaluationServer, field: str) -> None:
    status, named, said = refused(server, {**PLAN, field: "http://169.254.169.254/"})
    assert (status, named) == (400, field)
    assert said.startswith("a plan of the service does not take it")


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ({"data": ["../outside.jsonl"]}, "data", "there is no data file"),
        ({"data": ["ru=../outside.jsonl"]}, "data", "there is no data file"),
        ({"data": ["/etc/passwd"]}, "data", "there is no data file"),
        ({"data": ["en=/etc/passwd"]}, "data", "there is no data file"),
        ({"data": ["link.jsonl"]}, "data", "there is no data file"),
        ({"data": ["more"]}, "data", "there is no data file"),
        ({"data": ["more/../../outside.jsonl"]}, "data", "there is no data file"),
        ({"data": ["s3://bucket/x"]}, "data", "there is no data file"),
        ({"data": ["file:///etc/passwd"]}, "data", "there is no data file"),
        ({"data": ["d.jsonl\x00"]}, "data", "there is no data file"),
        ({"data": [""]}, "data", "there is no data file"),
        ({"data": []}, "data", "the list is empty"),
        ({"data": None}, "data", "give a value"),
        ({"answerer": "gpt"}, "answerer", "this server has no 'gpt'"),
        ({"answerer": ["a", "b"]}, "answerer", "a run has one answerer"),
        ({"judge": ["http://x"]}, "judge", "this server has no 'http://x'"),
        ({"system": "http://x"}, "system", "is no system's name"),
        ({"system": "../x"}, "system", "is no system's name"),
        ({"baseline": "oracel"}, "baseline", "is not one of"),
        ({"k": 0}, "k", "0 is not in the range"),
        ({"repeats": [1, 2]}, "repeats", "one value, not a list"),
        ({"sytem": "a"}, "sytem", "there is no such field; is system meant?"),
        ({"budget": "nan"}, "budget", "is no number"),
        ({"ingest-unit": "heap"}, "ingest-unit", "give pair, turn"),
        ({"shard": "3/2"}, "shard", "3/2"),
        ({"as-of": True, "stop-after": "ingest"}, "stop-after", "as-of stores"),
        ({"baseline": None}, "baseline", "give a value"),
        ({"seed": 2**64}, "seed", "is not in the range 0<=x<=9223372036854775807"),
        ({"context-tokens": 10**20}, "context-tokens", "is not in the range"),
        ({"repeats": 10**23}, "repeats", "is not in the range 1<=x<=1000"),
        ({"family": ["x=nobody"]}, "family", "there is no 'nobody': the run has"),
        ({"atemporal": "nobody"}, "atemporal", "there is no 'nobody'"),
        ({"case-study": "nobody"}, "case-study", "there is no 'nobody'"),
        ({"dialogue": "nobody"}, "dialogue", "the data holds no dialogue 'nobody'"),
        ({"language": "fr"}, "language", "the data holds no dialogue in 'fr'"),
        ({"shard": "1/9"}, "shard", "there are 2 dialogues"),
        ({"sample-questions": 999}, "data", "a sample of 999 is more"),
        ({"track": "controlled"}, "track", "give --context-tokens"),
        ({"repeats": 1000, "judge-repeats": 1000}, "data", "this server allows 100000"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_is_named(server: EvaluationServer, more: Any, field: str, said: str) -> None:
    status, named, told = refused(server, {**PLAN, **more})
    assert (status, named) == (400, field)
    assert said in told
    assert server.ask("GET", "/v1/runs?state=queued").json["runs"] == []


@pytest.mark.parametrize(
    ("body", "status", "field", "said"),
    [
        (b"", 400, "plan", "give fields and values"),
        (b"[1, 2]", 400, "plan", "give fields and values"),
        (b"data: own\ndata: own\nbaseline: refusal", 400, "data", "it stands there twice"),
        (b"k: 1\n  data: [\n", 400, "plan", "it is no YAML"),
        (b"data: " + b"[" * 20_000, 400, "plan", "too deep"),
        (b"baseline: refusal", 400, "data", "it is missing"),
        (b"data: own", 400, "system", "nothing to evaluate"),
        (b"\xff\xfe", 400, "plan", "not UTF-8"),
        (b"data: {a: b}", 400, "data", "give a value"),
        (b"data: !!python/object/apply:os.system [id]\nbaseline: refusal", 400, "data", ""),
        (b"#" * 70_000, 413, "", "more than 65536 bytes"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_plan(server: EvaluationServer, body: bytes, status: int, field: str, said: str) -> None:
    told = refused(server, body, headers={"Content-Type": "application/yaml"})
    assert told[:2] == (status, field)
    assert said in told[2]


def test_other_requests_that_cannot_be(server: EvaluationServer, done: str) -> None:
    assert refused(server, b"x", headers={"Content-Type": "text/plain"})[0] == 415
    assert refused(server, PLAN, headers={"Idempotency-Key": "x" * 200})[:2] == (400, "idempotency-key")
    for verb, path, status, reason in (
        ("GET", "/v2", 404, "PATH_NOT_FOUND"),
        ("GET", "/v1/runs/", 404, "PATH_NOT_FOUND"),
        ("PUT", "/v1/runs", 405, "VERB_NOT_ALLOWED"),
        ("GET", "/v1/runs?state=odd", 400, "VALIDATION_FAILED"),
        ("GET", "/v1/runs?page_size=1000", 400, "VALIDATION_FAILED"),
        ("GET", f"/v1/runs/{done}/report?lang=de", 400, "VALIDATION_FAILED"),
        ("GET", "/page/../command.py", 404, "PATH_NOT_FOUND"),
        ("GET", "/page/..%2Fcommand.py", 404, "PATH_NOT_FOUND"),
        ("GET", "/docs", 404, "PATH_NOT_FOUND"),
    ):
        answer = server.ask(verb, path)
        assert (answer.status, answer.json["reason"]) == (status, reason), path
        assert answer.headers["content-type"] == "application/problem+json"


def test_what_is_offered_is_listed_and_no_more(server: EvaluationServer) -> None:
    offer = server.ask("GET", "/v1/offer").json
    assert offer["data"] == ["own", "d.jsonl", "inside.jsonl", "more/e.jsonl"]
    assert (offer["systems"], offer["answerers"], offer["judges"]) == ([], [], [])
    for name in ("inside.jsonl", "more/e.jsonl", "en=d.jsonl"):
        assert server.ask("POST", "/v1/estimates", {**PLAN, "data": name}).status == 200


def test_what_went_wrong_in_a_run_is_told_without_where_things_are(server: EvaluationServer, site: Site) -> None:
    run = server.ended(server.start_run({"data": "d.jsonl", "system": "rag-dense"}))
    assert (run["state"], run["exit_code"]) == ("incomplete", 1)
    assert "memory system rag-dense" in run["sentences"][-1]
    (site.data / "broken.jsonl").write_text('{"dialogue_id": 5')
    answer = server.ask("POST", "/v1/runs", {**PLAN, "data": "broken.jsonl"})
    assert answer.status == 400
    assert str(site.folder) not in answer.body.decode()
    log = server.process.log
    assert not [key for key in site.keys.values() if key in log]
    assert "Bublik" not in log


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "0.0.0.0:0", "--insecure-dev"], "loopback"),
        ([], "give --keys FILE, or"),
        (["--insecure-dev", "--beat", "5", "--lease", "6"], "--lease must be three times --beat"),
        (["--insecure-dev", "--results", "odd://x"], "--results odd://x"),
        (["--insecure-dev", "--gateway-key-file", __file__], "--gateway, which is missing"),
        (["--insecure-dev", "--models", __file__], "--models"),
        (["--insecure-dev", "--tls-cert", __file__], "--tls-cert and --tls-key go together"),
        (["--insecure-dev", "--tls-cert", __file__, "--tls-key", __file__], "must hold PEM"),
        (["--keys", __file__], "--keys"),
    ],
)
def test_a_server_that_cannot_be_says_why(tmp_path: Path, words: list[str], said: str) -> None:
    done = run_command("memdock-eval", "serve", "--results", str(tmp_path / "r"), *words)
    assert done.code in (1, 2)
    assert said in done.words
    assert "Traceback" not in done.words


def test_variables_are_the_options(tmp_path: Path) -> None:
    words = ["serve", "--results", str(tmp_path), "--insecure-dev"]
    odd = run_command("memdock-eval", *words, environment={"MEMDOCK_EVAL_SERVE_PLACE": "2"})
    assert "there is no setting MEMDOCK_EVAL_SERVE_PLACE" in odd.words
    environment = {"MEMDOCK_EVAL_SERVE_RESULTS": str(tmp_path), "MEMDOCK_EVAL_SERVE_LISTEN": "0.0.0.0:0"}
    listens = run_command("memdock-eval", "serve", "--insecure-dev", environment=environment)
    assert "--listen must be a loopback address" in listens.words
    other = run_command("memdock-eval", "run", "--data", "own", "--out", str(tmp_path / "o"), environment=environment)
    assert "nothing to evaluate" in other.words


def test_over_tls(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    tls = files.server()
    made = Site(folder=tmp_path, results=str(tmp_path / "results"))
    with made.replicas("tls", flags=("--tls-cert", str(tls.cert_file), "--tls-key", str(tls.key_file))) as (server,):
        trusted = ssl.create_default_context(cafile=str(files.client().ca_file))
        url = server.url.replace("http://", "https://")
        with urllib.request.urlopen(f"{url}/readyz", context=trusted, timeout=30) as answer:
            assert answer.status == 200
