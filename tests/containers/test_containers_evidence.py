"""What a run records of its systems' containers, by a socket of the engine and by a proxy of it."""

import json
import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from support.compose import Stack, docker
from support.evaluation_servers import Site
from support.processes import run_command

SOCKET = "/var/run/docker.sock"


def test_a_run_records_images_limits_and_what_was_taken(up: Stack, tmp_path: Path) -> None:
    told = run(up, tmp_path / "run", f"unix://{SOCKET}")
    assert told["engine"].startswith("Docker ")
    found = {each["container"].removeprefix(f"{up.project}-"): each for each in told["containers"]}
    assert sorted(found) == ["postgres-1", "rag-dense-1"]
    assert found["postgres-1"]["system"] == "rag-dense, rag-hybrid"
    mine = found["rag-dense-1"]
    seen = up.inspect("rag-dense")
    assert mine["digest"] == seen["Image"]
    assert mine["image"] == seen["Config"]["Image"]
    assert mine["memory_limit_bytes"] == seen["HostConfig"]["Memory"]
    assert mine["cpu_limit"] == 2
    assert mine["pids_limit"] == 128
    assert mine["user"] == "10001:10001"
    assert mine["read_only"]
    assert not mine["privileged"]
    assert mine["capabilities_dropped"] == ["ALL"]
    assert mine["networks"] == [f"{up.project}_{name}" for name in ("models", "postgres", "rag-dense")]
    assert 20 << 20 < mine["peak_memory_bytes"] <= mine["memory_limit_bytes"]
    assert mine["cpu_s"] > 0
    assert mine["restarts"] == 0
    for page, word in (("report.html", "Peak memory, MiB"), ("report.ru.html", "Память, пик, МиБ")):
        text = (tmp_path / "run" / page).read_text()
        assert word in text
        assert mine["container"] in text


def test_the_service_records_it_by_a_proxy_that_only_reads_and_ends_no_run_without(up: Stack, tmp_path: Path) -> None:
    site = Site(folder=tmp_path, results=str(tmp_path / "results"))
    url, key = gateway_of(up, tmp_path)
    plan = {"data": "own", "language": "en", "dialogue": "0", "system": "rag-dense"}
    with ExitStack() as ends:
        proxy = ends.enter_context(ExitStack())
        address, asked = proxy.enter_context(proxy_of_the_engine())
        flags = ("--gateway", url, "--gateway-key-file", str(key), "--docker", address)
        (server,) = ends.enter_context(site.replicas("server", flags=flags))
        first = server.ended(server.start_run(plan))
        proxy.close()
        second = server.ended(server.start_run(plan))
        found = [server.ask("GET", f"/v1/runs/{each['run_id']}/manifest.json").json for each in (first, second)]
    assert [(each["state"], each["sentences"]) for each in (first, second)] == [("completed", [])] * 2
    assert {each["system"] for each in found[0]["isolation"]["containers"]} == {"rag-dense", "rag-dense, rag-hybrid"}
    assert found[1]["isolation"] is None
    assert {method for method, _ in asked} == {b"GET"}


def gateway_of(up: Stack, folder: Path) -> tuple[str, Path]:
    """The gateway's published address, and a file with its key."""
    key = folder / "gateway.key"
    key.write_text(docker("exec", up.container("gateway"), "cat", "/keys/first.key"))
    return f"grpc://127.0.0.1:{up.environment['GATEWAY_GRPC_PORT']}", key


def run(up: Stack, out: Path, engine: str) -> dict[str, Any]:
    """A run from this machine, through the gateway's published port."""
    url, key = gateway_of(up, out.parent)
    done = run_command(
        "memdock-eval", "run", "--url", url, "--key-file", key,
        "--system", "rag-dense", "--data", "own", "--language", "en", "--dialogue", "0", "--out", out,
        "--docker", engine, timeout_s=200,
    )  # fmt: skip
    assert done.code == 0, done.words
    found: dict[str, Any] = json.loads((out / "manifest.json").read_text())["isolation"]
    return found


class Proxy(socketserver.ThreadingTCPServer):
    """Passes to the engine's socket what comes, and keeps the requests: method and path. A GET has no body."""

    asked: ClassVar[list[tuple[bytes, bytes]]] = []


class Passing(socketserver.BaseRequestHandler):
    """One connection."""

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as engine:
            engine.connect(SOCKET)
            back = threading.Thread(target=self._pass, args=(engine, self.request))
            back.start()
            self._pass(self.request, engine, Proxy.asked)
            back.join()

    def _pass(self, source: socket.socket, sink: socket.socket, asked: list[tuple[bytes, bytes]] | None = None) -> None:
        with suppress(OSError):  # the other side has left
            while piece := source.recv(1 << 16):
                if asked is not None:
                    asked.extend(re.findall(rb"(?:^|\r\n\r\n)([A-Z]+) (\S+) HTTP/1\.1\r\n", piece))
                sink.sendall(piece)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def proxy_of_the_engine() -> Iterator[tuple[str, list[tuple[bytes, bytes]]]]:
    """An address of the engine's socket, and what was asked there."""
    with Proxy(("127.0.0.1", 0), Passing) as proxy:
        serving = threading.Thread(target=proxy.serve_forever)
        serving.start()
        try:
            yield f"tcp://127.0.0.1:{proxy.server_address[1]}", Proxy.asked
        finally:
            proxy.shutdown()
            serving.join()
