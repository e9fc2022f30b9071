"""G: who may call a gateway, and when it starts at all."""

import asyncio
import json
import shlex
import time
from urllib.parse import urlsplit

from memdock.conformance.case import Need, case, expect
from memdock.conformance.cases.gateway import ask
from memdock.conformance.faces import Face, GrpcFace, HttpFace, url_path
from memdock.conformance.gateway_kit import GatewayKit, gateway_kit
from memdock.conformance.probe import Probe, refused, told_refusal
from memdock.conformance.process import Launched, free_port
from memdock.errors import MemdockError
from memdock.service import METHODS, Call
from memdock.transport import Endpoint

_GATEWAY = (Need.GATEWAY,)


@case("G1", "no key, no entrance", needs=_GATEWAY, once=True)
async def keys(probe: Probe) -> None:
    """No key, a wrong, an expired one and one of another tenant, system, space or call: 401 or 403, over both faces,
    before the body is read, and no system hears of it."""
    async with gateway_kit(probe.target.gateway) as kit:
        expired = await kit.new_key("--lifetime", "1s")
        narrow = {
            "SYSTEM_FORBIDDEN": await kit.new_key("--system", "slow"),
            "SPACE_FORBIDDEN": await kit.new_key("--space", "team-*"),
            "CALL_FORBIDDEN": await kit.new_key("--call", "Describe"),
        }
        await _ends_with(kit.faces(narrow["SPACE_FORBIDDEN"])[1], "", "team-1")
        for reason, key in narrow.items():
            for face in kit.faces(key):
                await _ends_with(face, reason)
        for face in kit.faces(expired):
            await _ends_with(face, "CREDENTIAL_EXPIRED")
        kit.upstreams["steady"].received.clear()
        wrong = f"{kit.key[:-4]}aaaa"
        for face in kit.faces(""):
            await refused(ask(face), "CREDENTIAL_MISSING", what="a call without a key")
        for key in (wrong, "nonsense"):
            for face in kit.faces(key):
                await refused(ask(face), "CREDENTIAL_INVALID", what="a call with a wrong key")
        for reason, key in (*narrow.items(), ("CREDENTIAL_EXPIRED", expired)):
            for face in kit.faces(key):
                await refused(ask(face), reason, what="a call beside what a key allows")
        await _before_the_body(kit)
        expect(not kit.upstreams["steady"].received, "a call that was refused for its key reached a system")
        await _tenants_apart(kit)


async def _ends_with(face: Face, reason: str, space: str = "anna") -> None:
    """Calls until `reason` is the answer (empty: a good one): a changed file of keys is taken, and a key ends."""
    ends = time.monotonic() + 10
    while True:
        try:
            await ask(face, space)
            said = ""
        except MemdockError as error:
            said = error.reason
        if said == reason:
            return
        expect(time.monotonic() < ends, f"a call ends with {said or 'an answer'}, not with {reason or 'an answer'}")
        await asyncio.sleep(0.1)


async def _before_the_body(kit: GatewayKit) -> None:
    """HTTP: the answer comes although the body never does. gRPC: bytes that are no message are not looked at."""
    address = urlsplit(kit.url("http"))
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    path = url_path(METHODS["AddTurns"], {"system": "steady", "space_id": "anna"})
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    writer.write(head.encode())
    try:
        async with asyncio.timeout(5):
            status = await reader.readline()
    except TimeoutError:
        status = b""
    writer.close()
    expect(b" 401 " in status, "without a key the gateway waits for the body before it refuses")
    grpc_face = kit.faces("")[0]
    told = await grpc_face.send(METHODS["AddTurns"], b"\xff\xff\xff", path={})
    told_refusal(told, "CREDENTIAL_MISSING", what="bytes that are no message, without a key")


async def _tenants_apart(kit: GatewayKit) -> None:
    """The same space of two tenants has two names at the system."""
    other = await kit.new_key()
    await _ends_with(kit.faces(other)[1], "")
    for key in (kit.key, other):
        await ask(kit.faces(key)[0])
    names = {one.request.space_id for one in kit.upstreams["steady"].calls("Retrieve")[-2:]}
    expect(len(names) == 2, "two tenants' spaces of one name are one at the system")
    expect("anna" not in names, "the system sees the callers' names of spaces")


@case("G2", "no keys, no start", needs=_GATEWAY, once=True)
async def no_keys(probe: Probe) -> None:
    """Without keys the gateway refuses to start; with --insecure-dev it starts on loopback addresses only."""
    async with gateway_kit(probe.target.gateway) as kit:
        config = json.loads((kit.folder / "gateway.yaml").read_text().replace(" 1:", ' "1":'))
        del config["keys_file"], config["space_key"]
        bare = kit.folder / "bare.yaml"
        bare.write_text(json.dumps(config))
        await _does_not_start(kit, f"{kit.command} serve --config {shlex.quote(str(bare))}", "a gateway without keys")
        port = free_port()
        system = f"--system steady={kit.upstreams['steady'].address}"
        dev = f"{kit.command} serve --insecure-dev {system}"
        everywhere = f"{dev} --grpc 0.0.0.0:{port} --http 127.0.0.1:{free_port()}"
        await _does_not_start(kit, everywhere, "--insecure-dev on an address that is not loopback")
        await _starts(kit, f"{dev} --grpc 127.0.0.1:{port} --http 127.0.0.1:{free_port()}", port)


async def _does_not_start(kit: GatewayKit, command: str, what: str) -> None:
    process = Launched(command, kit.folder / "refused.log")
    await process.start()
    ended = await process.wait(15.0)
    await process.kill()
    expect(ended and process.code, f"{what} starts")
    expect("Traceback" not in process.last_words, f"{what} is refused with a trace")


async def _starts(kit: GatewayKit, command: str, port: int) -> None:
    process = Launched(command, kit.folder / "dev.log")
    await process.start()
    face = GrpcFace(Endpoint(url=f"grpc://127.0.0.1:{port}"))
    try:
        ends = time.monotonic() + 30
        while not await face.is_ready():
            expect(not process.ended and time.monotonic() < ends, "--insecure-dev does not start on loopback")
            await asyncio.sleep(0.1)
        await ask(face)
    finally:
        await face.close()
        await process.stop()


@case("G3", "headers that pretend change nothing", needs=_GATEWAY, once=True)
async def spoofed(probe: Probe) -> None:
    """X-User-Name, X-Tenant, X-Forwarded-For, a foreign Host: none changes whose the space is, or reaches a system."""
    lies = {
        "x-user-name": "liar-user",
        "x-tenant": "liar-tenant",
        "x-tenant-id": "liar-tenant",
        "x-memdock-tenant": "liar-tenant",
        "x-forwarded-for": "203.0.113.9",
        "x-forwarded-host": "liar.example",
        "x-real-ip": "203.0.113.9",
    }
    async with gateway_kit(probe.target.gateway) as kit:
        for face in (*kit.faces(), *kit.faces(headers=lies)):
            await ask(face)
        http = kit.faces()[1]
        assert isinstance(http, HttpFace)
        path = url_path(METHODS["Retrieve"], {"system": "steady", "space_id": "anna"})
        await http.exchange("POST", path, Call(), b'{"query": "x"}', headers={"Host": "liar.example"})
        seen = kit.upstreams["steady"].calls("Retrieve")
        expect(len(seen) == 5, "a call with odd headers is refused")
        expect(len({one.request.space_id for one in seen}) == 1, "a header changed whose the space is")
        carried = " ".join(f"{key}={value}" for one in seen for key, value in one.metadata.items())
        expect("liar" not in carried and "203.0.113.9" not in carried, "a header of a caller reached a system")
        expect(kit.key not in carried, "the caller's key reached a system")
