"""Limits hold before anything is parsed; every refusal is a problem document."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from memdock.errors import MemdockError
from memdock.service import METHODS
from memdock.types import Turn
from support.faces import ScriptedService, faces_of
from support.gateways import RunningGateway, gateway_over

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAX_BYTES = 2000


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    async with faces_of(ScriptedService()) as faces:
        systems = [{"name": "rag", "address": faces.http}]
        limits = {"max_request_bytes": MAX_BYTES, "max_turns_per_request": 3, "max_top_k": 5}
        async with gateway_over(tmp_path_factory.mktemp("gateway"), systems, limits=limits) as running:
            yield running


async def send(gateway: RunningGateway, head: str, *chunks: bytes) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Writes a request piece by piece until it is answered; status, headers and the JSON of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)
    key = gateway.keys["all"]
    writer.write(f"{head}\r\nhost: x\r\nauthorization: Bearer {key}\r\n".encode())
    for chunk in chunks:
        writer.write(chunk)
        await asyncio.sleep(0.01)
    async with asyncio.timeout(5):
        answer = await reader.readuntil(b"\r\n\r\n")
        lines = answer.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
    writer.close()
    return int(lines[0].split()[1]), headers, orjson.loads(body)


TURNS = "/v1/systems/rag/spaces/s/turns"
TURN = b'"turn_id":"t","session_id":"s","role":"user"'
JSON = b"content-type: application/json\r\n"


async def test_a_body_announced_as_too_large_is_never_read(gateway: RunningGateway) -> None:
    status, headers, problem = await send(gateway, f"POST {TURNS} HTTP/1.1", JSON, b"content-length: 2001\r\n\r\n")
    assert (status, problem["reason"]) == (413, "PAYLOAD_TOO_LARGE")
    assert headers["content-type"] == "application/problem+json"
    assert str(MAX_BYTES) in problem["detail"]


async def test_a_body_without_a_length_is_counted(gateway: RunningGateway) -> None:
    chunk = b"3e8\r\n" + b" " * 1000 + b"\r\n"
    status, _, problem = await send(
        gateway, f"POST {TURNS} HTTP/1.1", JSON, b"transfer-encoding: chunked\r\n\r\n", chunk, chunk, chunk
    )
    assert (status, problem["reason"]) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize("face", ["grpc", "http"])
async def test_both_faces_have_the_same_limits(gateway: RunningGateway, face: str) -> None:
    def turns(count: int, text: str = "x") -> list[Turn]:
        return [Turn(turn_id=f"t{number}", session_id="s", role="user", text=text) for number in range(count)]

    async def reason(work: Any) -> str:
        with pytest.raises(MemdockError) as refused:
            await work
        return refused.value.reason

    async with gateway.client(face, "rag") as client:
        assert await reason(client.add_turns("s", turns(1, "x" * MAX_BYTES))) == "PAYLOAD_TOO_LARGE"
        assert await reason(client.add_turns("s", turns(4))) == "VALIDATION_FAILED"
        assert await reason(client.retrieve("s", "q", top_k=6)) == "VALIDATION_FAILED"
        assert (await client.retrieve("s", "q", top_k=5)).memories == ()


@pytest.mark.parametrize(
    ("head", "status", "reason"),
    [
        ("GET /nothing HTTP/1.1", 404, "PATH_NOT_FOUND"),
        ("GET /v1/systems/rag/spaces/s HTTP/1.1", 404, "PATH_NOT_FOUND"),
        ("GET /docs HTTP/1.1", 404, "PATH_NOT_FOUND"),
        ("GET * HTTP/1.1", 404, "PATH_NOT_FOUND"),
        ("GET /docs%0A HTTP/1.1", 404, "PATH_NOT_FOUND"),
        ("GET /v1/systems/rag/spaces/s%0A/turns HTTP/1.1", 400, "VALIDATION_FAILED"),
        (f"PUT {TURNS} HTTP/1.1", 405, "VERB_NOT_ALLOWED"),
        ("DELETE /v1/systems HTTP/1.1", 405, "VERB_NOT_ALLOWED"),
        ("POST /readyz HTTP/1.1", 405, "VERB_NOT_ALLOWED"),
        (f"GET {TURNS}?page_size=many HTTP/1.1", 400, "VALIDATION_FAILED"),
        (f"GET {TURNS}?pages=1 HTTP/1.1", 400, "UNKNOWN_FIELD"),
        ("GET /v1/systems/rag/spaces/.x/turns HTTP/1.1", 400, "VALIDATION_FAILED"),
    ],
)
async def test_every_refusal_is_a_problem_document(
    gateway: RunningGateway, head: str, status: int, reason: str
) -> None:
    answered, headers, problem = await send(gateway, head, b"\r\n")
    assert (answered, problem["reason"]) == (status, reason)
    assert headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["request_id"] == headers["x-request-id"]


PAGES = ("/openapi.json", "/livez", "/readyz", "/metrics")
VERBS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}


async def test_a_known_path_with_another_verb_tells_its_own(gateway: RunningGateway) -> None:
    taken: dict[str, set[str]] = {page: {"GET", "HEAD"} for page in PAGES}
    for method in METHODS.values():
        taken.setdefault(method.path.format(system="rag", space_id="s"), set()).add(method.verb)
    async with aiohttp.ClientSession() as session:
        for path, verbs in taken.items():
            for verb in sorted(VERBS - verbs):
                async with session.request(verb, gateway.url("http") + path) as response:
                    assert (response.status, response.headers["allow"]) == (405, ", ".join(sorted(verbs))), (verb, path)
                    assert response.content_type == "application/problem+json"
                    assert verb == "HEAD" or (await response.json(content_type=None))["reason"] == "VERB_NOT_ALLOWED"


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_has_the_same_head_with_and_without_its_body(gateway: RunningGateway, page: str) -> None:
    async with aiohttp.ClientSession() as session:
        heads = []
        for verb in ("GET", "HEAD"):
            async with session.request(verb, gateway.url("http") + page) as response:
                assert response.headers["x-request-id"]
                heads.append((response.status, response.content_type))
        assert heads[0] == heads[1]
        assert heads[0][0] == 200


@pytest.mark.parametrize(
    ("body", "reason", "field"),
    [
        (b'{"turns":[]}', "VALIDATION_FAILED", "turns"),
        (
            b'{"turns":[{"turn_id":"t","session_id":"s","role":"user","text":"x","tme":1}]}',
            "UNKNOWN_FIELD",
            "turns[0].tme",
        ),
        (b'{"turns":[{"turn_id":"t","session_id":"s","role":"user","text":""}]}', "VALIDATION_FAILED", "turns[0].text"),
        (b'{"turns":', "MALFORMED_REQUEST", None),
    ],
)
async def test_a_bad_body_names_its_field(gateway: RunningGateway, body: bytes, reason: str, field: str | None) -> None:
    length = f"content-length: {len(body)}\r\n\r\n".encode()
    status, _, problem = await send(gateway, f"POST {TURNS} HTTP/1.1", JSON, length, body)
    assert (status, problem["reason"]) == (400, reason)
    assert [error["field"] for error in problem["errors"]] == ([field] if field else [])


async def test_a_request_behind_another_one_in_one_connection_has_a_record_of_its_own(gateway: RunningGateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)
    key = f"authorization: Bearer {gateway.keys['all']}\r\n".encode()
    writer.write(b"GET %b HTTP/1.1\r\nhost: x\r\n%b\r\n" % (TURNS.encode(), key))
    writer.write(b"GET /one HTTP/1.1\r\nhost: x\r\n\r\nGET /two HTTP/1.1\r\nhost: x\r\n\r\n")
    answers = b""
    async with asyncio.timeout(5):
        while answers.count(b"PATH_NOT_FOUND") < 2:
            answers += await reader.read(65536)
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        metrics = (await reader.read()).decode()
    writer.close()
    assert answers.startswith(b"HTTP/1.1 200")
    assert answers.count(b"server-timing: gateway") == 1
    assert 'code="OK",method="ListTurns",system="rag"} 1.0' in metrics
    assert 'code="NOT_FOUND",method="ListTurns"' not in metrics


async def test_what_callers_say_makes_no_series_of_its_own(gateway: RunningGateway) -> None:
    async def said(word: str) -> int:
        """The number of series after calls that have the word wherever a caller can put one."""
        async with aiohttp.ClientSession(headers={"authorization": f"Bearer {gateway.keys['all']}"}) as session:
            for verb, path in (
                ("GET", f"/{word}"),
                ("GET", f"/v1/systems/{word}"),
                ("GET", f"/v1/systems/rag/spaces/{word}/turns?page_token={word}"),
                ("GET", f"/v1/systems/{word}/spaces/{word}/turns?{word}=1"),
                ("POST", f"/v1/systems/rag/spaces/{word}/retrieve"),
                ("DELETE", f"/v1/systems/{word}"),
            ):
                headers = {"x-request-id": word, "content-type": word}
                body = orjson.dumps({word: word}) if verb == "POST" else None
                async with session.request(verb, gateway.url("http") + path, headers=headers, data=body):
                    pass
            async with session.get(gateway.url("http"), headers={"authorization": f"Bearer {word}"}):
                pass
            async with gateway.client("grpc", word) as client:
                with pytest.raises(MemdockError):
                    await client.retrieve(word, word)
            async with session.get(gateway.url("http") + "/metrics") as response:
                metrics = await response.text()
        assert word not in metrics
        return len(metrics.splitlines())

    first = await said("w0")
    assert {await said(f"w{number}") for number in range(1, 10)} == {first}
