"""The whole way on one machine, without a container: embedder, reference memories on embedded PostgreSQL, gateway.

Each part is started by the same console command that a user types; they find each other by their port files.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import yaml

from memdock_evaluator.interrupting import Notice, end_with_parent
from memdock_evaluator.locking import locked

START_S = 120.0
STOP_S = 60.0
"""An adapter drains for up to 25 s and then stops its PostgreSQL; one that is killed instead leaves that running."""


class StackError(Exception):
    """A part of the stack could not be started; the message says which and where its log is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStack:
    """A running stack. `key_file` holds a key that may do everything."""

    grpc_url: str
    http_url: str
    key_file: Path
    systems: tuple[str, ...]
    parts: Sequence["Part"]

    def check(self) -> None:
        """Raises `StackError` where a part has ended, which none does by itself."""
        for part in self.parts:
            if part.process.poll() is not None:
                raise StackError(f"{part.name} has ended ({_how(part.process.returncode)}); its log: {part.log}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A process of a stack."""

    name: str
    log: Path
    process: "subprocess.Popen[bytes]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSystem:
    """One system of the reference adapter: its name and how it ranks (dense, hybrid)."""

    name: str
    fusion: str


REFERENCE_SYSTEMS = (
    ReferenceSystem(name="rag-dense", fusion="dense"),
    ReferenceSystem(name="rag-hybrid", fusion="hybrid"),
)


@contextmanager
def local_stack(
    folder: Path,
    notice: Notice,
    *,
    fresh: bool = False,
    systems: Sequence[ReferenceSystem] = REFERENCE_SYSTEMS,
    embedding_cache: Path | None = None,
    grpc: str = "127.0.0.1:0",
    http: str = "127.0.0.1:0",
) -> Iterator[LocalStack]:
    """Starts the stack with its data, configuration, keys and logs in `folder`, and ends it with the block.

    `fresh`: what an earlier stack left in `folder` is removed first. `embedding_cache`: a file that outlives the stack,
    so that a text is embedded once. `grpc`, `http`: where the gateway listens. Raises `StackError`, and
    `KeyboardInterrupt` where `notice` is given while it starts. Signals must give notice (`noticing`) and interrupt
    nothing, or what was just started may be left running.
    """
    with _alone_in(folder) as lock, ExitStack() as parts:
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        starts = _Starts(folder=folder, notice=notice, lock=lock)
        embedder = parts.enter_context(_embedder(starts, embedding_cache))
        addresses = {
            system.name: parts.enter_context(_reference_memory(starts, system, embedder)) for system in systems
        }
        key_file = _write_gateway_files(folder, addresses, grpc, http)
        ports = parts.enter_context(
            starts.process("gateway", "memdock-gateway", ["serve", "--config", str(folder / "gateway.yaml")])
        )
        yield LocalStack(
            grpc_url=f"grpc://127.0.0.1:{ports['grpc']}",
            http_url=f"http://127.0.0.1:{ports['http']}",
            key_file=key_file,
            systems=tuple(addresses),
            parts=starts.parts,
        )


@contextmanager
def _alone_in(folder: Path) -> Iterator[int]:
    """Keeps a second stack out of a folder; the lock is a file beside it, which outlives the folder.

    Gives the lock's descriptor, for the parts to inherit: it is free when the last of them has ended, also where this
    process was killed before.
    """
    lock_file = folder.with_name(f".{folder.name}.lock")
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(locked(lock_file))
        except BlockingIOError as error:
            said = f"another stack runs in {folder}, or still ends: end it, wait for it, or give another --work"
            raise StackError(said) from error
        except OSError as error:
            said = f"{lock_file.parent} cannot be written to ({error.strerror}): give another --work"
            raise StackError(said) from error
        yield lock


@dataclass(frozen=True, slots=True, kw_only=True)
class _Starts:
    """Starts the parts of a stack; `parts` are those that it has started."""

    folder: Path
    notice: Notice
    lock: int
    parts: list[Part] = field(default_factory=list)

    @contextmanager
    def process(self, name: str, command: str, flags: Sequence[str]) -> Iterator[dict[str, int]]:
        """Runs a command until the block ends; gives the ports that it is bound to."""
        log, port_file = self.folder / f"{name}.log", self.folder / f"{name}.ports.json"
        port_file.unlink(missing_ok=True)
        self.notice.heed()
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - our own commands
                [find_command(command), *flags, "--port-file", str(port_file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=clean_environment(),
                start_new_session=True,  # a signal of the terminal reaches us alone; we stop the parts in order
                pass_fds=(self.lock,),
                preexec_fn=partial(end_with_parent, os.getpid()),
            )
        try:
            ports = self._ports(process, port_file, name, log)
            self.parts.append(Part(name=name, log=log, process=process))
            yield ports
        finally:
            _stop(process)

    def _ports(self, process: "subprocess.Popen[bytes]", port_file: Path, name: str, log: Path) -> dict[str, int]:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if port_file.exists():
                ports: dict[str, int] = json.loads(port_file.read_text())
                return ports
            if process.poll() is not None:
                last = _last_line(log.read_text(errors="replace"))
                raise StackError(f"{name} ended while starting: {last} (the whole log: {log})")
            self.notice.heed()
            time.sleep(0.05)
        raise StackError(f"{name} did not start within {START_S:.0f} s (its log: {log})")


@contextmanager
def _embedder(starts: _Starts, cache: Path | None) -> Iterator[str]:
    """One embedder for all systems, so that a text which two of them store is embedded once."""
    flags = ["serve", "--listen", "127.0.0.1:0", *(["--cache", str(cache)] if cache else [])]
    with starts.process("embedder", "memdock-embedder", flags) as ports:
        url = f"http://127.0.0.1:{ports['http']}/v1"
        with urlopen(f"{url}/models", timeout=START_S) as answer:  # noqa: S310 - our own process
            (model,) = json.load(answer)["data"]
        yield f"{url}#{model['id']}"


@contextmanager
def _reference_memory(starts: _Starts, system: ReferenceSystem, embedder: str) -> Iterator[str]:
    flags = ["serve", "--system", system.name, "--fusion", system.fusion, "--data", str(starts.folder / "postgres")]
    flags += ["--embedder", embedder, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with starts.process(system.name, "memdock-pgvector", flags) as ports:
        yield f"grpc://127.0.0.1:{ports['grpc']}"


def find_command(command: str) -> str:
    """The console command beside this Python, or on the PATH; raises `StackError`."""
    beside = Path(sys.executable).with_name(command)
    found = str(beside) if beside.exists() else shutil.which(command)
    if found is None:
        raise StackError(f"{command} is not installed: the local stack needs memdock-gateway and memdock-pgvector")
    return found


def clean_environment() -> dict[str, str]:
    """Our environment without the settings of other deployables."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCK_")}


def _how(code: int) -> str:
    """An exit code in words; below zero it is a signal's number."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _last_line(said: str) -> str:
    """The last words of a part that ended, which are its error."""
    lines = said.strip().splitlines() or ["it does not say why"]
    return lines[-1].removeprefix("Error: ")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _write_gateway_files(folder: Path, addresses: dict[str, str], grpc: str, http: str) -> Path:
    """Lets the gateway write its folder, once, and puts today's addresses into its configuration; the key's file."""
    config = folder / "gateway.yaml"
    if not config.exists():
        flags = [word for name, address in addresses.items() for word in ("--system", f"{name}={address}")]
        _run([find_command("memdock-gateway"), "init", str(folder), "--tenant", "local", *flags])
    settings = yaml.safe_load(config.read_text())
    settings["listen"] = {"grpc": grpc, "http": http}
    settings["systems"] = [{"name": name, "address": address} for name, address in addresses.items()]
    config.write_text(yaml.safe_dump(settings, sort_keys=False))
    return folder / "first.key"


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own commands
        command, env=clean_environment(), capture_output=True, text=True, check=False, start_new_session=True
    )
    if done.returncode:
        raise StackError(f"{Path(command[0]).name} {command[1]} failed: {_last_line(done.stderr)}")
