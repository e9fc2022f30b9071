"""The whole way as processes: a scripted model, two systems on one embedded PostgreSQL, the gateway with keys."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from memdock.adapter.postgres import EmbeddedPostgres
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.postgres_rows import rows_that_hold
from support.processes import Daemon, free_port, kill_process, run_command
from support.words import embed_words

HYBRID, DENSE = "rag-hybrid", "rag-dense"


@dataclass(slots=True, kw_only=True)
class Adapter:
    """A memory system of the reference adapter, and where it listens."""

    process: Daemon
    grpc_port: int
    http_port: int

    @property
    def address(self) -> str:
        """Its gRPC face."""
        return f"grpc://127.0.0.1:{self.grpc_port}"


@dataclass(slots=True, kw_only=True)
class WholeStack:
    """A running stack. `key` may do everything; the gateway's ports stay the same from start to start."""

    folder: Path
    models: ModelServer
    adapters: Mapping[str, Adapter]
    gateway: Daemon
    grpc_url: str
    http_url: str
    key: str
    key_file: Path
    keys_file: Path

    @property
    def embedder(self) -> str:
        """The scripted model as `--embedder` names it."""
        return f"{self.models.url}#words"

    def new_key(self, *flags: str, tenant: str = "tests") -> str:
        """Another key, made by the command; the gateway takes it within two seconds."""
        done = run_command("memdock", "keys", "create", "--file", self.keys_file, "--tenant", tenant, *flags)
        assert done.code == 0, done.words
        return done.output.strip()

    def kill_postgres(self) -> None:
        """SIGKILL to the embedded PostgreSQL's postmaster; the adapters start it again."""
        pid_file = self.folder / "data" / "postgres" / "postmaster.pid"
        kill_process(int(pid_file.read_text().split("\n", 1)[0]))

    def rows_that_hold(self, words: Sequence[str]) -> list[str]:
        """Every `schema.table: word` of which a row holds the word, as text or as the bytes of it."""
        return rows_that_hold(postgres_url(self.folder / "data"), words, at_least=8)


def postgres_url(data: Path) -> str:
    """Where the PostgreSQL of an adapter's `--data` folder is."""
    return EmbeddedPostgres(data).url


def serve_flags(data: Path, system: str, embedder: str, grpc_port: int, http_port: int) -> list[str | Path]:
    """`memdock-pgvector serve` of one system."""
    fusion = "dense" if system == DENSE else "hybrid"
    where: list[str | Path] = ["--system", system, "--fusion", fusion, "--data", data, "--embedder", embedder]
    return ["serve", *where, "--grpc", f"127.0.0.1:{grpc_port}", "--http", f"127.0.0.1:{http_port}"]


def gateway_config(folder: Path, systems: Mapping[str, str], grpc_port: int, http_port: int, **more: Any) -> Path:
    """The configuration of a gateway in `folder`, with the files that `memdock-gateway init` makes."""
    made = run_command("memdock-gateway", "init", folder)
    assert made.code == 0, made.words
    path = folder / "gateway.yaml"
    config = yaml.safe_load(path.read_text())
    config["listen"] = {"grpc": f"127.0.0.1:{grpc_port}", "http": f"127.0.0.1:{http_port}"}
    config["systems"] = [
        {"name": name, "address": address, "deadline_s": 20, **more} for name, address in systems.items()
    ]
    path.write_text(yaml.safe_dump(config))
    return path


@contextmanager
def whole_stack(folder: Path) -> Iterator[WholeStack]:
    """Starts everything in `folder` and ends it with the block."""
    data = folder / "data"
    with ExitStack() as ends:
        models = ends.enter_context(models_in_thread(ModelServer(embed=embed_words)))
        ends.callback(_end_postgres, data)
        adapters = {}
        for system in (HYBRID, DENSE):
            grpc_port, http_port = free_port(), free_port()
            flags = serve_flags(data, system, f"{models.url}#words", grpc_port, http_port)
            process = Daemon(system, "memdock-pgvector", flags, folder)
            adapters[system] = Adapter(process=process, grpc_port=grpc_port, http_port=http_port)
            ends.callback(process.stop)
            process.launch()
        for adapter in adapters.values():
            adapter.process.wait_ready()
        grpc_port, http_port = free_port(), free_port()
        config = gateway_config(
            folder / "gateway", {name: each.address for name, each in adapters.items()}, grpc_port, http_port
        )
        gateway = Daemon("gateway", "memdock-gateway", ["serve", "--config", config], folder)
        ends.callback(gateway.stop)
        stack = WholeStack(
            folder=folder,
            models=models,
            adapters=adapters,
            gateway=gateway,
            grpc_url=f"grpc://127.0.0.1:{grpc_port}",
            http_url=f"http://127.0.0.1:{http_port}",
            key=(config.parent / "first.key").read_text().strip(),
            key_file=config.parent / "first.key",
            keys_file=config.parent / "keys.json",
        )
        gateway.start()
        yield stack


def _end_postgres(data: Path) -> None:
    """A server that outlived the adapters (a test has killed them) is not left behind."""
    with suppress(FileNotFoundError, ProcessLookupError):
        kill_process(int((data / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0]))
