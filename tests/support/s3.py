"""An S3 server of the tests (moto's, a process of its own), and a gate before it that can be shut or say no."""

import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import s3fs

from support.processes import command_path, free_port, wait_until

KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}
BUCKET = "memdock-runs"


class Gate:
    """Passes connections on to a port. `answer`: what requests get instead; `answer_once`: what the next ones get."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.port = free_port()
        self.answer: bytes | None = None
        self.answer_once: list[bytes] = []
        self._listener: socket.socket | None = None
        self.open()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        """Takes connections (again)."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        """Refuses connections from now on."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client), suppress(OSError):
            if (answer := self.answer_once.pop(0) if self.answer_once else self.answer) is not None:
                _read_request(client)
                client.sendall(answer)
                return
            with closing(socket.create_connection(("127.0.0.1", self._target))) as server:
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join()


def refusal(status: str, code: str) -> bytes:
    """An answer with an error of S3's."""
    body = f"<Error><Code>{code}</Code><Message>{code} of the tests</Message></Error>"
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    return f"{head}\r\n{body}".encode()


class S3:
    """The server behind its gate. `environment` has what AWS's own tools read."""

    def __init__(self, gate: Gate, log: Path) -> None:
        self.gate, self._log = gate, log
        self.environment: Mapping[str, str] = {**KEYS, "AWS_ENDPOINT_URL_S3": gate.url}

    @property
    def files(self) -> s3fs.S3FileSystem:
        """A client of the tests' own, which does not cache."""
        return s3fs.S3FileSystem(
            key="tests", secret="tests", endpoint_url=self.gate.url, use_listings_cache=False, skip_instance_cache=True
        )

    def requests(self, since: int = 0) -> list[str]:
        """The method of each request that was answered, after the first `since`."""
        lines = self._log.read_text(errors="replace").splitlines()
        return [line.split('"')[1].split()[0] for line in lines if '"' in line and " HTTP/1.1" in line][since:]

    def read(self, address: str) -> bytes:
        """An object's bytes."""
        return bytes(self.files.cat_file(address))


@contextmanager
def s3_server(folder: Path) -> Iterator[S3]:
    """Serves until the block ends, with one bucket."""
    port, log = free_port(), folder / "s3.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [command_path("moto_server"), "-H", "127.0.0.1", "-p", str(port)], stdout=output, stderr=output
        )
    gate = Gate(port)
    try:
        wait_until(lambda: _answers(server, port, log), 60.0, "the S3 server answers")
        s3 = S3(gate, log)
        s3.files.mkdir(BUCKET)
        yield s3
    finally:
        gate.shut()
        server.kill()
        server.wait(10)


def _answers(server: "subprocess.Popen[bytes]", port: int, log: Path) -> bool:
    assert server.poll() is None, log.read_text()
    with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/"):
        return True
    return False


def _read_request(client: socket.socket) -> None:
    """All of it, so that the answer is not lost to a reset: a client that waits to send a body is let wait."""
    client.settimeout(0.2)
    with suppress(TimeoutError):
        while client.recv(65536):
            pass
    client.settimeout(None)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
