"""A part that cannot start as it was told: one sentence that says what to do, an exit code, no trace, nothing left."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes import Finished, free_port, run_command
from support.whole_stack import HYBRID, WholeStack, gateway_config, serve_flags


def refused(done: Finished, *words: str, code: int = 1) -> None:
    """The command ended with `code` and the words, and without a trace."""
    assert done.code == code, done.words
    assert "Traceback" not in done.words
    assert "absl" not in done.words, "gRPC speaks for itself"
    for word in words:
        assert word in done.words


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Somebody listens there and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.slow
def test_the_gateways_port_is_in_use(stack: WholeStack, tmp_path: Path, silent_port: int) -> None:
    systems = {HYBRID: stack.adapters[HYBRID].address}
    for number, ports in enumerate(((silent_port, 0), (0, silent_port))):
        config = gateway_config(tmp_path / str(number), systems, *ports)
        refused(run_command("memdock-gateway", "serve", "--config", config), "cannot listen on", str(silent_port))


@pytest.mark.parametrize("face", ["grpc", pytest.param("http", marks=pytest.mark.slow)])
def test_the_adapters_port_is_in_use(stack: WholeStack, silent_port: int, face: str) -> None:
    ports = (silent_port, 0) if face == "grpc" else (0, silent_port)
    flags = serve_flags(stack.folder / "data", "other-system", stack.embedder, *ports)
    refused(run_command("memdock-pgvector", *flags), "cannot serve: cannot listen on", str(silent_port))


@pytest.mark.slow
def test_a_system_is_served_once(stack: WholeStack) -> None:
    flags = serve_flags(stack.folder / "data", HYBRID, stack.embedder, 0, 0)
    refused(run_command("memdock-pgvector", *flags), f"The schema {HYBRID} is in use by another process")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("systems: [\n", [":2: is not YAML; look at column 1"]),
        ("- systems\n", [":1: must be a mapping"]),
        (
            "systems:\n  - {name: A, adress: grpc://h:1}\n",
            [":2: systems[0].name", "adress: is not known here; did you mean address?"],
        ),
        ("systems:\n  - {name: a, address: ftp://h:1}\n", [":2: systems[0].address", "grpc, grpcs, http, https"]),
        ("systems:\n  - {name: a, address: grpc://h:1}\nkeys_file: none.json\n", [":3: keys_file", "none.json"]),
        ("systems:\n  - {name: a, address: grpc://h:1}\n", ["keys_file", "--insecure-dev"]),
    ],
)
def test_a_gateway_is_configured_wrongly(tmp_path: Path, text: str, told: list[str]) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(text)
    refused(run_command("memdock-gateway", "serve", "--config", config), *told)


@pytest.mark.slow
def test_the_space_key_is_another_one(stack: WholeStack, tmp_path: Path) -> None:
    """A gateway with a lost key would show every space as empty."""
    systems = {HYBRID: stack.adapters[HYBRID].address}
    config = gateway_config(tmp_path / "one", systems, 0, 0)
    gateway_config(tmp_path / "two", systems, 0, 0)
    (tmp_path / "two" / "space-keys.yaml").replace(tmp_path / "one" / "space-keys.yaml")
    refused(run_command("memdock-gateway", "serve", "--config", config), "fingerprint")


@pytest.mark.parametrize("silent", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_postgresql_does_not_answer(stack: WholeStack, silent_port: int, silent: bool) -> None:
    port = silent_port if silent else free_port()
    address = f"postgresql://user:hunter2@127.0.0.1:{port}/memory"
    done = run_command("memdock-pgvector", "serve", "--database", address, "--embedder", stack.embedder)
    refused(done, f"cannot serve: PostgreSQL cannot be used at 127.0.0.1:{port}: ")
    assert "hunter2" not in done.words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "variable"),
    [
        ("memdock-pgvector", "MEMDOCK_FUSON"),
        ("memdock-gateway", "MEMDOCK_CONFIGURATION"),
        ("memdock", "MEMDOCK_SISTEM"),
    ],
)
def test_a_variable_is_misspelt(command: str, variable: str) -> None:
    arguments = ["describe"] if command == "memdock" else ["serve"]
    done = run_command(command, *arguments, environment={variable: "x"})
    assert done.code in (1, 2)
    assert variable in done.words
    assert "Traceback" not in done.words


@pytest.mark.slow
def test_a_flag_is_misspelt() -> None:
    done = run_command("memdock-pgvector", "serve", "--fusion", "dens")
    refused(done, "'dens' is not one of", code=2)
    assert re.search(r"memdock-pgvector serve --help", done.words)
