"""The HTTP binding, byte by byte, over a scripted service."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yarl

from memdock.errors import UnauthenticatedError, UnavailableError, error
from memdock.http_server import MAX_HEAD_BYTES
from memdock.service import Call, Method
from memdock.types import Limits
from memdock.v1 import memory_pb2 as pb
from support.faces import Faces, ScriptedService, faces_of, until
from support.logs import logged

pytestmark = pytest.mark.asyncio(loop_scope="module")

TURNS = "/v1/systems/-/spaces/a/turns"
RETRIEVE = "/v1/systems/-/spaces/a/retrieve"


class Http:
    """Raw requests against one face: paths go out as they are written."""

    def __init__(self, session: aiohttp.ClientSession, faces: Faces, service: ScriptedService) -> None:
        self.session = session
        self.faces = faces
        self.service = service

    async def __call__(
        self, verb: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {"content-type": "application/json", **(headers or {})}
        url = yarl.URL(f"{self.faces.http}{path}", encoded=True)
        async with self.session.request(verb, url, data=data, headers=given) as response:
            content = await response.read()
            answer = json.loads(content) if content and "json" in response.content_type else content
            return response.status, {key.lower(): value for key, value in response.headers.items()}, answer

    async def raw(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.faces.http_port)
        writer.write(request)
        await writer.drain()
        answer = await reader.read(65536)
        writer.close()
        await writer.wait_closed()
        return answer


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def started() -> AsyncIterator[Http]:
    service = ScriptedService()
    async with faces_of(service, limits=Limits(max_request_bytes=2000)) as faces, aiohttp.ClientSession() as session:
        yield Http(session, faces, service)


@pytest.fixture
def http(started: Http) -> Http:
    """The started face with nothing seen and the empty answers."""
    started.service.clear()
    started.faces.told.clear()
    return started


@pytest.fixture
def log() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    with logged() as read:
        yield read


@pytest.mark.parametrize(
    ("verb", "path", "method"),
    [
        ("GET", "/v1/systems", "ListSystems"),
        ("GET", "/v1/systems/-", "Describe"),
        ("POST", TURNS, "AddTurns"),
        ("GET", TURNS, "ListTurns"),
        ("POST", "/v1/systems/-/spaces/a/flush", "Flush"),
        ("POST", RETRIEVE, "Retrieve"),
        ("POST", "/v1/systems/-/spaces/a/forget", "Forget"),
        ("POST", "/v1/systems/-/spaces/a/reset", "Reset"),
        ("GET", "/v1/systems/-/spaces/a/memories", "ListMemories"),
    ],
)
async def test_each_call_has_its_path_and_verb(http: Http, verb: str, path: str, method: str) -> None:
    bodies = {
        "AddTurns": {"turns": [{"turn_id": "t", "session_id": "s", "role": "user", "text": "x"}]},
        "Retrieve": {"query": "q"},
        "Forget": {"selector": {"turn_ids": ["t"]}},
    }
    status, headers, _ = await http(verb, path, bodies.get(method))
    assert status == 200
    assert headers["content-type"] == "application/json"
    name, request, _ = http.service.seen[0]
    assert name == method
    assert getattr(request, "system", "") == ""
    assert getattr(request, "space_id", "a") == "a"
    assert http.faces.told[0].method == method


async def test_answers_are_narrowed_proto_json(http: Http) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        memory = pb.Memory(memory_id="m", text="да", score=0.0, time={"seconds": 0, "nanos": 500_000_000})
        return pb.RetrieveResponse(memories=[memory], timing=[pb.StageTiming(stage="embed", ms=1.5)])

    http.service.answer = answer
    _, headers, document = await http("POST", RETRIEVE, {"query": "q", "topK": 3})
    assert document == {
        "memories": [
            {
                "memory_id": "m",
                "text": "да",
                "score": 0.0,
                "kind": "",
                "time": "1970-01-01T00:00:00.500Z",
                "sources": [],
                "metadata": {},
            }
        ],
        "pending": 0,
        "failed_count": 0,
        "timing": [{"stage": "embed", "ms": 1.5}],
    }
    assert re.fullmatch(r"embed;dur=1\.50, total;dur=\d+\.\d\d", headers["server-timing"])
    assert http.service.seen[0][1].top_k == 3


@pytest.mark.parametrize(
    ("path", "status", "space_id"),
    [
        ("/v1/systems/s/spaces/a%2Db/flush", 200, "a-b"),
        ("/v1/systems/s/spaces/%61/flush", 200, "a"),
        ("/v1/systems/s/spaces/a.b~c/flush", 200, "a.b~c"),
        ("/v1/systems/s/spaces/a%2Fb/flush", 400, None),
        ("/v1/systems/s/spaces/a%2fflush/flush", 400, None),
        ("/v1/systems/s/spaces/%2E%2E/flush", 400, None),
        ("/v1/systems/s/spaces/../flush", 400, None),
        ("/v1/systems/s/spaces/./flush", 400, None),
        ("/v1/systems/s/spaces/%20/flush", 400, None),
        ("/v1/systems/s/spaces/%00/flush", 400, None),
        ("/v1/systems/s/spaces/%FF/flush", 400, None),
        ("/v1/systems/s/spaces/a%252Fb/flush", 400, None),
        ("/v1/systems/%2E/spaces/a/flush", 400, None),
        ("/v1/systems/s/spaces//flush", 404, None),
        ("/v1/systems//spaces/a/flush", 404, None),
        ("/v1/systems/s/spaces/a/flush/", 404, None),
        ("//v1/systems/s/spaces/a/flush", 404, None),
        ("/v1/systems/s/%73paces/a/flush", 404, None),
        ("/v1/systems/s/spaces/a/b/flush", 404, None),
        ("/V1/systems/s/spaces/a/flush", 404, None),
        ("/", 404, None),
        ("/v2/systems", 404, None),
        ("/v1/systems/s/spaces/a/dream", 404, None),
    ],
)
async def test_paths_are_matched_as_they_are_sent(http: Http, path: str, status: int, space_id: str | None) -> None:
    answer = (await http.raw(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())).decode()
    assert answer.startswith(f"HTTP/1.1 {status} ")
    if space_id is not None:
        assert http.service.seen[0][1].space_id == space_id
        return
    document = json.loads(answer.partition("\r\n\r\n")[2])
    assert document["reason"] == {400: "VALIDATION_FAILED", 404: "PATH_NOT_FOUND"}[status]
    assert "content-type: application/problem+json" in answer
    assert http.service.seen == []


@pytest.mark.parametrize(
    ("verb", "path", "allow"),
    [
        ("DELETE", TURNS, "GET, POST"),
        ("PUT", RETRIEVE, "POST"),
        ("GET", RETRIEVE, "POST"),
        ("POST", "/v1/systems", "GET"),
        ("HEAD", "/v1/systems", "GET"),
        ("OPTIONS", RETRIEVE, "POST"),
        ("POST", "/livez", "GET, HEAD"),
    ],
)
async def test_a_wrong_verb_is_told_the_right_ones(http: Http, verb: str, path: str, allow: str) -> None:
    status, headers, document = await http(verb, path)
    assert (status, headers["allow"]) == (405, allow)
    assert headers["content-type"] == "application/problem+json"
    assert verb == "HEAD" or document["reason"] == "VERB_NOT_ALLOWED"


async def test_a_problem_is_whole(http: Http) -> None:
    status, headers, document = await http("POST", RETRIEVE, {"qeury": "q"}, headers={"X-Request-Id": "r-1"})
    assert status == 400
    assert headers["content-type"] == "application/problem+json"
    assert headers["x-request-id"] == "r-1"
    assert document == {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": "qeury: is not a field of the protocol",
        "reason": "UNKNOWN_FIELD",
        "request_id": "r-1",
        "errors": [{"field": "qeury", "description": "is not a field of the protocol"}],
    }
    assert http.faces.told[-1].reason == "UNKNOWN_FIELD"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json; charset=UTF-8"}, 200),
        ({"content-type": "Application/JSON"}, 200),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
    ],
)
async def test_a_body_must_say_that_it_is_json(http: Http, headers: dict[str, str], status: int) -> None:
    found, _, document = await http("POST", RETRIEVE, {"query": "q"}, headers=headers)
    assert found == status
    assert status == 200 or document["reason"] == "CONTENT_TYPE_UNSUPPORTED"


async def test_a_call_without_a_body_needs_no_content_type(http: Http) -> None:
    answer = await http.raw(b"POST /v1/systems/-/spaces/a/reset HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("verb", "path", "body", "field"),
    [
        ("GET", f"{TURNS}?page_sise=3", None, "page_sise"),
        ("GET", f"{TURNS}?page_size=3&page_size=4", None, "page_size"),
        ("GET", f"{TURNS}?page_size=", None, "page_size"),
        ("GET", f"{TURNS}?page_size=2000", None, "page_size"),
        ("GET", "/v1/systems?page_size=3", None, "page_size"),
        ("GET", TURNS, {}, "body"),
        ("POST", f"{RETRIEVE}?top_k=3", {"query": "q"}, "top_k"),
        ("POST", RETRIEVE, {"query": "q", "space_id": "b"}, "space_id"),
    ],
)
async def test_fields_go_where_the_binding_has_them(http: Http, verb: str, path: str, body: Any, field: str) -> None:
    status, _, document = await http(verb, path, body)
    assert (status, document["errors"][0]["field"]) == (400, field)


async def test_a_get_call_takes_its_fields_from_the_query(http: Http) -> None:
    await http("GET", f"{TURNS}?pageSize=3&page_token=a%2Bb%20c")
    _, request, _ = http.service.seen[0]
    assert (request.page_size, request.page_token) == (3, "a+b c")


async def test_a_broken_query_string_is_refused(http: Http) -> None:
    status, _, document = await http("GET", f"{TURNS}?page_token=%FF")
    assert (status, document["reason"]) == (400, "MALFORMED_REQUEST")


async def test_a_large_body_is_refused_by_its_header_before_it_is_read(http: Http) -> None:
    head = f"POST {RETRIEVE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    answer = await asyncio.wait_for(http.raw(f"{head}Content-Length: 999999999\r\n\r\n".encode()), 5)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"PAYLOAD_TOO_LARGE" in answer


async def test_a_large_chunked_body_is_refused_as_it_comes(http: Http) -> None:
    head = (
        f"POST {RETRIEVE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"3e8\r\n" + b" " * 1000 + b"\r\n"
    answer = await asyncio.wait_for(http.raw(head.encode() + chunk * 3), 5)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert http.service.seen == []


async def test_a_body_at_the_limit_passes(http: Http) -> None:
    body = b'{"query": "q"}'.ljust(2000)
    assert (await http("POST", RETRIEVE, body))[0] == 200
    assert (await http("POST", RETRIEVE, body + b" "))[0] == 413


async def test_headers_reach_the_call(http: Http) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = {"Authorization": "bearer key", "X-Request-Id": "r", "traceparent": trace, "X-Timeout-Ms": "60000"}
    await http("GET", TURNS, headers=headers)
    _, _, call = http.service.seen[0]
    assert (call.credential, call.request_id, call.trace_parent) == ("key", "r", trace)
    assert 59 < (call.left_s() or 0) <= 60
    assert "key" not in repr(call)


async def test_odd_headers_are_replaced_or_left_out(http: Http) -> None:
    _, headers, _ = await http(
        "GET", TURNS, headers={"Authorization": "Basic x", "X-Request-Id": "a b", "traceparent": "x"}
    )
    _, _, call = http.service.seen[0]
    assert (call.credential, call.trace_parent, call.deadline) == ("", "", None)
    assert re.fullmatch("[0-9a-f]{16}", call.request_id)
    assert headers["x-request-id"] == call.request_id


@pytest.mark.parametrize(
    "name",
    ["Authorization", "Content-Type", "Content-Encoding", "Traceparent", "X-Request-Id", "X-Timeout-Ms"],
)
async def test_a_header_that_is_read_may_stand_there_once(http: Http, name: str) -> None:
    answer = await http.raw(f"GET {TURNS} HTTP/1.1\r\nHost: x\r\n{name}: 1\r\n{name}: 1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400 ")
    document = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (document["reason"], document["errors"][0]["field"]) == ("MALFORMED_REQUEST", name.lower())
    assert http.service.seen == []


async def test_a_header_that_nobody_reads_may_stand_there_twice(http: Http) -> None:
    answer = await http.raw(f"GET {TURNS} HTTP/1.1\r\nHost: x\r\nVia: a\r\nVia: b\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_a_trailer_is_no_header(http: Http) -> None:
    head = f"POST {RETRIEVE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    body = b'f\r\n{"query": "cat"}\r\n'.replace(b"f", b"10", 1)
    answer = await http.raw(head.encode() + b"\r\n" + body + b"0\r\nAuthorization: Bearer key\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert http.service.seen[0][2].credential == ""


def is_refused_head(answer: bytes) -> bool:
    """Whether it is a problem that names the bound of a request's head."""
    head, _, body = answer.partition(b"\r\n\r\n")
    document = json.loads(body)
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/problem+json" in head
    assert document["reason"] == "MALFORMED_REQUEST"
    return f"more than {MAX_HEAD_BYTES} bytes" in document["detail"]


async def test_the_head_of_a_request_is_bounded_to_the_byte(http: Http) -> None:
    room = MAX_HEAD_BYTES - len(TURNS) - len("hostx") - len("x") - 2 * 32
    for more, taken in ((0, True), (1, False)):
        answer = await http.raw(f"GET {TURNS} HTTP/1.1\r\nHost: x\r\nX: {'y' * (room + more)}\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200 ") if taken else is_refused_head(answer)


@pytest.mark.parametrize(
    "head",
    [
        f"GET /{'x' * 20_000} HTTP/1.1\r\n\r\n",
        f"GET {TURNS} HTTP/1.1\r\n" + "X: \r\n" * 600 + "\r\n",
        f"GET {TURNS} HTTP/1.1\r\nX: {'y' * 20_000}",
    ],
    ids=["a long URL", "many headers", "a header without an end"],
)
async def test_no_part_of_a_head_is_kept_past_the_bound(http: Http, head: str) -> None:
    assert is_refused_head(await asyncio.wait_for(http.raw(head.encode()), 5))
    assert http.service.seen == []


async def test_no_trailer_is_kept_past_the_bound(http: Http) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", http.faces.http_port)
    head = f"POST {RETRIEVE} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    writer.write(head.encode())
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(f"0\r\nX: {'y' * 20_000}".encode())
    assert is_refused_head(await asyncio.wait_for(reader.read(), 5))
    writer.close()
    assert http.service.seen == []


async def test_large_bodies_behind_one_another_are_no_head(http: Http) -> None:
    body = b'{"query": "q"}'.ljust(2000)
    head = f"POST {RETRIEVE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2000\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", http.faces.http_port)
    writer.write((head.encode() + body) * 20)
    writer.write(f"GET {TURNS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert (await asyncio.wait_for(reader.read(), 5)).count(b"HTTP/1.1 200 ") == 21
    writer.close()


async def test_what_is_not_http_is_a_problem_and_one_line_of_the_log(http: Http, log: Callable[[], list[Any]]) -> None:
    for _ in range(20):
        answer = await http.raw(b"\x16\x03\x01 a TLS hello, or anything else\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["reason"] == "MALFORMED_REQUEST"
    (line,) = log()
    assert (line["event"], line["problem"]) == ("library", "HttpParserInvalidMethodError")


async def test_an_upgrade_that_nobody_offers_is_answered_as_a_call(http: Http, log: Callable[[], list[Any]]) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
    for _ in range(5):
        answer = await http.raw(f"GET {TURNS} HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200 ")
    assert {line["problem"] for line in log()} == {"HttpParserUpgrade"}


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "soon", "", "86400001", "9999999999999"])
async def test_a_deadline_that_is_none_is_refused(http: Http, value: str) -> None:
    status, _, document = await http("GET", TURNS, headers={"X-Timeout-Ms": value})
    assert (status, document["errors"][0]["field"]) == (400, "X-Timeout-Ms")


async def test_a_deadline_cancels_the_work_behind_it(http: Http) -> None:
    cancelled = asyncio.Event()
    http.service.answer = sleeper(cancelled)
    status, _, document = await http("GET", TURNS, headers={"X-Timeout-Ms": "100"})
    assert (status, document["reason"]) == (504, "DEADLINE_EXCEEDED")
    assert cancelled.is_set()


async def test_a_deadline_also_ends_a_body_that_does_not_come(http: Http) -> None:
    head = f"POST {RETRIEVE} HTTP/1.1\r\nHost: x\r\nX-Timeout-Ms: 100\r\nContent-Length: 10\r\n\r\n"
    assert (await asyncio.wait_for(http.raw(head.encode()), 5)).startswith(b"HTTP/1.1 504 ")


async def test_a_body_that_never_comes_is_told_as_that(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdock.face_http.READ_TIMEOUT_S", 0.1)
    answer = await http.raw(f"POST {RETRIEVE} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 504 ")
    assert b"the body did not come within 0.1 s" in answer
    assert b"X-Timeout-Ms" not in answer


@pytest.mark.parametrize("half", [False, True], ids=["closes", "closes its sending half"])
async def test_a_client_that_leaves_cancels_the_work_behind_it(http: Http, half: bool) -> None:
    """The two look the same from here: a FIN."""
    cancelled = asyncio.Event()
    http.service.answer = sleeper(cancelled)
    _, writer = await asyncio.open_connection("127.0.0.1", http.faces.http_port)
    writer.write(f"GET {TURNS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await until(lambda: http.service.seen)
    writer.write_eof() if half else writer.close()
    await asyncio.wait_for(cancelled.wait(), 5)
    writer.close()
    await until(lambda: http.faces.told)
    assert http.faces.told[-1].reason == "CANCELLED"


def sleeper(cancelled: asyncio.Event) -> Any:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    return answer


async def test_an_error_that_asks_to_wait_has_the_header(http: Http) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        raise error("QUEUE_FULL", "the queue is full", retry_after_s=0.2)

    http.service.answer = answer
    status, headers, document = await http("GET", TURNS)
    assert (status, headers["retry-after"], document["retry_after_s"]) == (429, "1", 0.2)


async def test_a_bug_shows_none_of_its_words(http: Http) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        raise RuntimeError("secret of a turn")

    http.service.answer = answer
    status, _, document = await http("GET", TURNS)
    assert (status, document["reason"]) == (500, "INTERNAL")
    assert "secret" not in json.dumps(document)
    assert document["request_id"][:8] in document["detail"]


async def test_an_answer_that_json_cannot_hold_is_an_error(http: Http) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        return pb.RetrieveResponse(memories=[pb.Memory(score=float("nan"))])

    http.service.answer = answer
    status, _, document = await http("POST", RETRIEVE, {"query": "q"})
    assert (status, document["reason"]) == (500, "ADAPTER_PROTOCOL_ERROR")


async def test_a_caller_is_refused_before_the_body_is_read() -> None:
    async def admit(method: Method, path: Any, call: Call) -> None:
        assert (method.name, dict(path)) == ("AddTurns", {"system": "", "space_id": "a"})
        raise UnauthenticatedError("CREDENTIAL_MISSING", "no key")

    service = ScriptedService()
    async with faces_of(service, admit=admit) as faces, aiohttp.ClientSession() as session:
        answer = await Http(session, faces, service).raw(
            f"POST {TURNS} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n".encode()
        )
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"www-authenticate: Bearer" in answer


async def test_health_pages() -> None:
    away = False

    async def check_ready() -> dict[str, bool]:
        if away:
            raise UnavailableError("STORE_UNREACHABLE", "the store is away")
        return {"toy": True}

    service = ScriptedService()
    async with (
        faces_of(service, check_ready=check_ready, metrics=lambda: b"up 1\n") as faces,
        aiohttp.ClientSession() as session,
    ):
        http = Http(session, faces, service)
        assert (await http("GET", "/readyz"))[::2] == (200, {"ready": True, "systems": {"toy": True}})
        assert (await http("HEAD", "/readyz"))[0] == 200
        assert (await http("GET", "/metrics"))[::2] == (200, b"up 1\n")
        away = True
        status, _, document = await http("GET", "/readyz")
        assert (status, document["reason"]) == (503, "STORE_UNREACHABLE")
        assert (await http("GET", "/livez"))[::2] == (200, {"live": True})
    assert faces.told == []


async def test_a_face_without_metrics_has_no_such_page(http: Http) -> None:
    status, _, document = await http("GET", "/metrics")
    assert (status, document["reason"]) == (404, "PATH_NOT_FOUND")


async def test_a_readiness_check_that_breaks_is_not_ready() -> None:
    async def check_ready() -> dict[str, bool]:
        raise RuntimeError("secret")

    service = ScriptedService()
    async with faces_of(service, check_ready=check_ready) as faces, aiohttp.ClientSession() as session:
        status, _, document = await Http(session, faces, service)("GET", "/readyz")
    assert (status, document["reason"]) == (503, "STORE_UNREACHABLE")
    assert "secret" not in json.dumps(document)
