"""The reference memory behind a gateway as one command: both run in its process group, and end with it in order."""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.processes import command_path, free_port


def main() -> None:
    """Serves until SIGTERM: then the gateway drains first, and the memory after it."""
    parser = argparse.ArgumentParser()
    for name in ("--data", "--model", "--grpc", "--http"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    data = Path(options.data)
    data.mkdir(exist_ok=True)
    inner, ports = free_port(), data / "ports.json"
    ports.unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    memory = subprocess.Popen(
        [
            *(command_path("memdock-pgvector"), "serve", "--data", str(data), "--embedder", f"{options.model}#words"),
            *("--grpc", f"127.0.0.1:{inner}", "--port-file", str(ports)),
        ]
    )
    gateway = None
    try:
        while not ports.exists() and memory.poll() is None:
            time.sleep(0.05)
        system = f"rag-hybrid=grpc://127.0.0.1:{inner}"
        flags = ("--insecure-dev", "--system", system, "--grpc", options.grpc, "--http", options.http)
        gateway = subprocess.Popen([command_path("memdock-gateway"), "serve", *flags])
        gateway.wait()
    finally:
        for process in filter(None, (gateway, memory)):
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
