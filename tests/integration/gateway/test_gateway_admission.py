"""Who gets in: decided before a body is read or parsed, whatever the caller claims to be."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import grpc
import grpc.aio
import orjson
import pytest
import pytest_asyncio

from memdock.error_wire import DETAILS_KEY, error_from_status
from memdock.errors import MemdockError
from memdock.key_file import editing
from memdock.keys import rotate_key, split_credential, utc_now
from memdock.service import METHODS
from memdock.v1 import memory_pb2 as pb
from support.faces import ScriptedService, faces_of
from support.gateways import RunningGateway, gateway_over, make_key

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS: dict[str, dict[str, Any]] = {
    "expired": {"lifetime_s": -1},
    "one-space": {"spaces": ["mine", "team-*"]},
    "one-system": {"systems": ["first"]},
    "reader": {"calls": ["Retrieve", "ListSystems"]},
    "other-tenant": {"tenant": "globex"},
}


class Started:
    """A gateway over one scripted adapter that is known by two names."""

    def __init__(self, gateway: RunningGateway, adapter: ScriptedService) -> None:
        self.gateway = gateway
        self.adapter = adapter

    async def http(
        self, path: str, key: str = "", *, verb: str = "POST", headers: str = "", body: bytes | None = None
    ) -> tuple[int, dict[str, Any]]:
        """One request; without a `body` it announces 1000 bytes and never sends them."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway.http_port)
        authorization = f"authorization: Bearer {key}\r\n" if key else ""
        length = 1000 if body is None else len(body)
        head = f"{verb} {path} HTTP/1.1\r\nhost: x\r\n{authorization}{headers}content-length: {length}\r\n"
        writer.write(head.encode() + b"content-type: application/json\r\nconnection: close\r\n\r\n" + (body or b""))
        async with asyncio.timeout(5):
            status_line = await reader.readline()
            rest = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line[16:]) for line in rest.lower().split(b"\r\n") if line.startswith(b"content-length: ")
            )
            answer = orjson.loads(await reader.readexactly(length))
        writer.close()
        return int(status_line.split()[1]), answer

    async def grpc_refusal(self, method: str, body: bytes, metadata: Any = ()) -> MemdockError:
        """The error of a call over gRPC."""
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.gateway.grpc_port}") as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHODS[method].grpc_path)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(body, metadata=metadata)
        details = next((value for name, value in refused.value.trailing_metadata() or () if name == DETAILS_KEY), None)
        assert isinstance(details, bytes)
        return error_from_status(refused.value.code().value[0], details, "the gateway")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Started]:
    adapter = ScriptedService()
    async with faces_of(adapter) as faces:
        systems = [{"name": name, "address": faces.grpc} for name in ("first", "second")]
        async with gateway_over(tmp_path_factory.mktemp("gateway"), systems, keys=KEYS) as gateway:
            yield Started(gateway, adapter)


@pytest.fixture
def started(running: Started) -> Started:
    running.adapter.clear()
    return running


def retrieve_path(system: str = "first", space: str = "mine") -> str:
    return f"/v1/systems/{system}/spaces/{space}/retrieve"


@pytest.mark.parametrize(
    ("key", "path", "status", "reason"),
    [
        ("", retrieve_path(), 401, "CREDENTIAL_MISSING"),
        ("wrong", retrieve_path(), 401, "CREDENTIAL_INVALID"),
        ("expired", retrieve_path(), 401, "CREDENTIAL_EXPIRED"),
        ("one-space", retrieve_path(space="yours"), 403, "SPACE_FORBIDDEN"),
        ("one-space", retrieve_path(space="MINE"), 403, "SPACE_FORBIDDEN"),
        ("one-space", retrieve_path(space="mine2"), 403, "SPACE_FORBIDDEN"),
        ("one-system", retrieve_path(system="second"), 403, "SYSTEM_FORBIDDEN"),
        ("one-system", retrieve_path(system="unknown"), 403, "SYSTEM_FORBIDDEN"),
        ("reader", "/v1/systems/first/spaces/mine/reset", 403, "CALL_FORBIDDEN"),
    ],
)
async def test_http_refuses_before_it_reads_the_body(
    started: Started, key: str, path: str, status: int, reason: str
) -> None:
    credential = {"": "", "wrong": started.gateway.keys["all"][:-1] + "x"}.get(key) or started.gateway.keys.get(key, "")
    answered, problem = await started.http(path, credential)
    assert (answered, problem["reason"]) == (status, reason)
    assert started.adapter.seen == []
    assert credential not in str(problem) or not credential


@pytest.mark.parametrize(
    ("key", "reason"),
    [("", "CREDENTIAL_MISSING"), ("wrong", "CREDENTIAL_INVALID"), ("expired", "CREDENTIAL_EXPIRED")],
)
async def test_grpc_refuses_before_it_parses(started: Started, key: str, reason: str) -> None:
    credential = {"wrong": "mdk_aaaaaaaaaa_bbbb"}.get(key) or started.gateway.keys.get(key, "")
    metadata = (("authorization", f"Bearer {credential}"),) if credential else ()
    assert (await started.grpc_refusal("Retrieve", b"\xff\xff garbage", metadata)).reason == reason


@pytest.mark.parametrize(
    ("key", "request_", "reason"),
    [
        ("one-space", pb.RetrieveRequest(system="first", space_id="yours", query="q"), "SPACE_FORBIDDEN"),
        ("one-system", pb.RetrieveRequest(system="second", space_id="mine", query="q"), "SYSTEM_FORBIDDEN"),
        ("reader", pb.ResetRequest(system="first", space_id="mine"), "CALL_FORBIDDEN"),
    ],
)
async def test_grpc_refuses_what_the_key_does_not_allow(started: Started, key: str, request_: Any, reason: str) -> None:
    metadata = (("authorization", f"Bearer {started.gateway.keys[key]}"),)
    method = type(request_).__name__.removesuffix("Request")
    refused = await started.grpc_refusal(method, request_.SerializeToString(), metadata)
    assert refused.reason == reason
    assert started.adapter.seen == []


async def test_a_prefix_allows_what_begins_with_it(started: Started) -> None:
    for space, status in (("team-", 200), ("team-7", 200), ("mine", 200), ("tea", 403)):
        path = retrieve_path(space=space)
        assert (await started.http(path, started.gateway.keys["one-space"], body=b'{"query":"q"}'))[0] == status


async def test_tenants_never_meet_and_the_adapter_learns_no_name(started: Started) -> None:
    for key in ("all", "other-tenant"):
        await started.http(retrieve_path(space="mine"), started.gateway.keys[key], body=b'{"query":"q"}')
    (_, ours, call), (_, theirs, _) = started.adapter.seen
    assert ours.space_id != theirs.space_id
    assert "mine" not in ours.space_id
    assert ours.system == ""
    assert call.credential == "", "the caller's key stays at the gateway"


async def test_claims_in_headers_change_nothing(started: Started) -> None:
    spoofed = (
        "x-user-name: globex\r\nx-tenant: globex\r\nx-forwarded-for: 127.0.0.1\r\nx-forwarded-user: root\r\n"
        "forwarded: for=127.0.0.1\r\nx-original-url: /v1/systems/first/spaces/yours/retrieve\r\n"
    )
    key = started.gateway.keys["one-space"]
    assert (await started.http(retrieve_path(space="yours"), key, headers=spoofed))[0] == 403
    for headers in ("", spoofed):
        await started.http(retrieve_path(space="mine"), key, headers=headers, body=b'{"query":"q"}')
    (_, plain, _), (_, claimed, _) = started.adapter.seen
    assert plain.space_id == claimed.space_id


async def test_a_path_is_matched_before_it_is_decoded(started: Started) -> None:
    key = started.gateway.keys["one-space"]
    status, problem = await started.http(retrieve_path(space="mine%2F..%2Fyours"), key, body=b'{"query":"q"}')
    assert (status, problem["reason"]) == (403, "SPACE_FORBIDDEN")
    status, _ = await started.http(retrieve_path(space="te%61m-1"), key, body=b'{"query":"q"}')
    assert status == 200


@pytest.mark.parametrize("face", ["grpc", "http"])
async def test_only_allowed_systems_are_listed(started: Started, face: str) -> None:
    async with started.gateway.client(face, "", key="one-system") as client:
        assert [one.system for one in await client.list_systems()] == ["first"]


async def test_new_rotated_and_revoked_keys_hold_without_a_restart(started: Started) -> None:
    folder = started.gateway.folder

    async def status(credential: str) -> int:
        return (await started.http(retrieve_path(), credential, body=b'{"query":"q"}'))[0]

    async def until_status(credential: str, wanted: int) -> None:
        async with asyncio.timeout(5):
            while await status(credential) != wanted:  # noqa: ASYNC110  the gateway looks at its file by itself
                await asyncio.sleep(0.1)

    first = make_key(folder, tenant="acme", systems=["*"], spaces=["*"], calls=["*"])
    assert await status(first) == 401
    await until_status(first, 200)
    key_id, _ = split_credential(first)
    with editing(folder / "keys.json") as file:
        file.keys[key_id], second = rotate_key(file.keys[key_id], overlap=timedelta(hours=1), now=utc_now())
    await until_status(second, 200)
    assert await status(first) == 200, "the old secret holds while it overlaps"

    (folder / "keys.json").rename(folder / "kept")
    (folder / "keys.json").write_text("{ half a fi")
    await asyncio.sleep(1.2)
    assert await status(second) == 200, "a file that cannot be read changes nothing"
    (folder / "kept").rename(folder / "keys.json")

    with editing(folder / "keys.json") as file:
        del file.keys[key_id]
    await until_status(second, 401)
    assert await status(first) == 401
