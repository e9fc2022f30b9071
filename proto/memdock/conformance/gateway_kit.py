"""A gateway that the suite starts by its command, with scripted systems behind it.

The command line is that of `memdock-gateway`: `init FOLDER --system NAME=ADDRESS`, `serve --config FILE
--port-file FILE`, and keys in a file that `memdock keys` writes.
"""

import asyncio
import json
import re
import shlex
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from memdock.conformance.faces import Face, open_face
from memdock.conformance.process import READY_S, CannotRunError, Launched, run_command
from memdock.conformance.upstream import Upstream, serving_upstream
from memdock.transport import Endpoint

SYSTEMS = ("steady", "slow", "odd")
SLOW_PLACES, SLOW_QUEUE = 2, 2
_MEMDOCK = f"{shlex.quote(sys.executable)} -c 'from memdock.cli import main; main()'"


@dataclass(slots=True, kw_only=True)
class GatewayKit:
    """A running gateway. `key` may do everything; `upstreams` by the systems' names; `spans`: traces it sent."""

    folder: Path
    command: str
    process: Launched
    ports: Mapping[str, int]
    key: str
    upstreams: Mapping[str, Upstream]
    spans: list[bytes] = field(default_factory=list)
    opened: list[Face] = field(default_factory=list)

    def url(self, scheme: str) -> str:
        """The address of a face."""
        return f"{scheme}://127.0.0.1:{self.ports[scheme]}"

    def faces(self, key: str | None = None, headers: Mapping[str, str] | None = None) -> list[Face]:
        """Both faces with a key (the one that may do everything where none is given)."""
        credential = self.key if key is None else key
        made = [
            open_face(Endpoint(url=self.url(scheme), credential=credential, headers=headers or {}))
            for scheme in ("grpc", "http")
        ]
        self.opened += made
        return made

    async def new_key(self, *flags: str, tenant: str = "other") -> str:
        """Another key; the gateway takes it within two seconds."""
        return await new_key(self.folder, tenant, *flags)

    @property
    def log(self) -> str:
        """All that the gateway has written to its output."""
        return self.process.log.read_text(errors="replace")


async def new_key(folder: Path, tenant: str, *flags: str) -> str:
    """A key in the folder's file, by `memdock keys create`."""
    file = shlex.quote(str(folder / "keys.json"))
    words = " ".join(shlex.quote(flag) for flag in flags)
    code, said = await run_command(f"{_MEMDOCK} --json keys create --file {file} --tenant {tenant} {words}")
    if code:
        raise CannotRunError(f"memdock keys create ended with {code}: {said[-300:]}")
    key: str = json.loads(said)["key"]
    return key


@asynccontextmanager
async def gateway_kit(
    command: str, real: Mapping[str, str] | None = None, token: str = ""
) -> AsyncIterator[GatewayKit]:
    """Starts a gateway over three scripted systems and the `real` ones (addresses by name, with a bearer token)."""
    async with AsyncExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="memdock-conformance-gateway-")))
        upstreams = {name: await ends.enter_async_context(serving_upstream()) for name in SYSTEMS}
        spans: list[bytes] = []
        telemetry = await ends.enter_async_context(_collector(spans))
        config = await _write(command, folder, upstreams, real or {}, token, telemetry)
        port_file = folder / "ports.json"
        process = Launched(
            f"{command} serve --config {shlex.quote(str(config))} --port-file {shlex.quote(str(port_file))}",
            folder / "gateway.log",
        )
        ends.push_async_callback(process.stop)
        await process.start()
        await _until_serving(process, port_file)
        kit = GatewayKit(
            folder=folder,
            command=command,
            process=process,
            ports=json.loads(port_file.read_text()),
            key=(folder / "first.key").read_text().strip(),
            upstreams=upstreams,
            spans=spans,
        )
        try:
            yield kit
        finally:
            for face in kit.opened:
                await face.close()


async def _write(
    command: str, folder: Path, upstreams: Mapping[str, Upstream], real: Mapping[str, str], token: str, telemetry: str
) -> Path:
    """The files of `init`, and a configuration of our own with its fingerprint of the space key."""
    code, said = await run_command(f"{command} init {shlex.quote(str(folder))} --system steady=grpc://127.0.0.1:1")
    if code:
        raise CannotRunError(f"{command} init ended with {code}: {said[-300:]}")
    path = folder / "gateway.yaml"
    fingerprint = re.search(r"fingerprints:\s*\n\s*1:\s*(\S+)", path.read_text())
    if fingerprint is None:
        raise CannotRunError(f"{command} init writes no fingerprint of a space key into gateway.yaml")
    systems: list[dict[str, Any]] = [{"name": name, "address": one.address} for name, one in upstreams.items()]
    systems[SYSTEMS.index("slow")] |= {"concurrency": SLOW_PLACES, "queue": SLOW_QUEUE}
    if token:
        (folder / "real.token").write_text(token)
    systems += [
        {"name": name, "address": address} | ({"token_file": "real.token"} if token else {})
        for name, address in real.items()
    ]
    config = {
        "listen": {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0"},
        "keys_file": "keys.json",
        "space_key": {"file": "space-keys.yaml", "fingerprints": {1: fingerprint[1].strip("'\"")}},
        "audit_file": "audit.jsonl",
        "systems": systems,
        "telemetry": {"otlp_endpoint": telemetry, "sample_ratio": 1.0},
        "drain_s": 5,
    }
    # JSON is YAML, but for keys that are numbers.
    path.write_text(json.dumps(config, indent=1).replace('"1":', "1:"))
    return path


async def _until_serving(process: Launched, port_file: Path) -> None:
    ends = time.monotonic() + READY_S
    while not port_file.exists():  # noqa: ASYNC240 - it takes no time
        if process.ended:
            raise CannotRunError(f"the gateway has ended; its last words: {process.last_words}")
        if time.monotonic() > ends:
            raise CannotRunError(f"the gateway does not serve within {READY_S:g} s")
        await asyncio.sleep(0.05)


@asynccontextmanager
async def _collector(spans: list[bytes]) -> AsyncIterator[str]:
    """Takes traces over OTLP/HTTP; the bytes hold every string of a span as it is."""

    async def take(request: web.Request) -> web.Response:
        spans.append(await request.read())
        return web.Response(content_type="application/x-protobuf")

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/traces", take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
