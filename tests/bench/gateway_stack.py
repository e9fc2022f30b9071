"""Starts the measured processes in a folder of their own, and ends them."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PARTS = Path(__file__).with_name("gateway_parts.py")
START_S = 30.0

_NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream system {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port} http2; location / {{ grpc_pass grpc://system; }} }}
}}
"""

_TELEMETRY = """
telemetry: {{otlp_endpoint: "http://127.0.0.1:{port}", sample_ratio: {sample_ratio}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Ports on 127.0.0.1; `nginx` is `None` where it is not installed. `key` is the gateway's API key."""

    direct: int
    proxy: int
    nginx: int | None
    gateway_grpc: int
    gateway_http: int
    key: str


@contextlib.contextmanager
def running(folder: Path, *, sample_ratio: float) -> Iterator[Stack]:
    """The whole stack; its processes are ended with the block."""
    with contextlib.ExitStack() as ends:

        def start(name: str, *command: str) -> None:
            log = ends.enter_context((folder / f"{name}.out").open("wb"))
            process = subprocess.Popen(command, stdout=log, stderr=log, env=_clean_environment())
            ends.callback(_end, process)

        def part(role: str, *rest: str) -> Mapping[str, int]:
            start(role, sys.executable, str(PARTS), role, str(folder), *rest)
            return _ports(folder / f"{role}.json", lambda: (folder / f"{role}.out").read_text())

        direct = part("system")["grpc"]
        proxy = part("proxy", f"127.0.0.1:{direct}")["grpc"]
        collector = part("collector")["http"]
        nginx = _free_port() if shutil.which("nginx") else None
        if nginx:
            (folder / "nginx.conf").write_text(_NGINX.format(folder=folder, upstream=direct, port=nginx))
            start("nginx", "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"))
            _reached(nginx)
        command = [str(Path(sys.executable).with_name("memdock-gateway"))]
        config = _gateway_config(command, folder / "gateway", direct, collector, sample_ratio)
        ports_file = folder / "gateway.json"
        start("gateway", *command, "serve", "--config", str(config), "--port-file", str(ports_file))
        ports = _ports(ports_file, lambda: (folder / "gateway.out").read_text())
        key = (config.parent / "first.key").read_text().strip()
        yield Stack(
            direct=direct, proxy=proxy, nginx=nginx, gateway_grpc=ports["grpc"], gateway_http=ports["http"], key=key
        )


def _gateway_config(command: list[str], folder: Path, system: int, collector: int, sample_ratio: float) -> Path:
    """What `init` writes, on free ports and with traces on."""
    init = [*command, "init", str(folder), "--system", f"fixed=grpc://127.0.0.1:{system}"]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL, env=_clean_environment())
    config = folder / "gateway.yaml"
    text = config.read_text().replace("127.0.0.1:7450", "127.0.0.1:0").replace("127.0.0.1:7451", "127.0.0.1:0")
    config.write_text(text + _TELEMETRY.format(port=collector, sample_ratio=sample_ratio))
    return config


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCK_")}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ports(file: Path, output: Callable[[], str]) -> Mapping[str, int]:
    until = time.monotonic() + START_S
    while not file.exists():
        if time.monotonic() > until:
            raise SystemExit(f"{file.stem} did not start:\n{output()}")
        time.sleep(0.05)
    ports: Mapping[str, int] = json.loads(file.read_text())
    return ports


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _reached(port: int) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise SystemExit("nginx did not start")
