"""The gateway as a process: how it starts, refuses to start, keeps its promises over a restart, and stops."""

import asyncio
import os
import re
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from memdock.client import AsyncClient, ConnectedClient, connect_async
from memdock.errors import MemdockError
from memdock.server import ServeOptions, Server
from memdock.service import Call, Method
from memdock.sqlite_ledger import SqliteLedger
from memdock.transport import Endpoint, open_transport
from memdock.types import Turn
from memdock_gateway.cli import main
from memdock_gateway.config_file import load_config
from memdock_gateway.server import Gateway
from memdock_gateway.space_key import new_space_key, write_space_keys
from support.certificates import Certificates, make_certificates
from support.faces import ScriptedService, faces_of, until
from support.gateways import write_gateway
from support.processes import Daemon
from support.toys import ToySystem

TURN = Turn(turn_id="t", session_id="s", role="user", text="Kazan")


def daemon(config: Path, *flags: str) -> Daemon:
    return Daemon("gateway", "memdock-gateway", ["serve", "--config", config, *flags], config.parent)


def refusal(config: Path, *flags: str, **environment: str) -> str:
    """What `serve` says where it must refuse: it ends by itself before it listens, with a sentence and no trace."""
    words = ["serve", "--config", str(config), *flags]
    done = CliRunner(env=dict.fromkeys(os.environ, None) | environment).invoke(main, words)
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit), "no trace for a user"
    return " ".join(done.output.split())


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def started(process: Daemon) -> AsyncIterator[Daemon]:
    await asyncio.to_thread(process.start)
    try:
        yield process
    finally:
        await asyncio.to_thread(process.kill)


def client(process: Daemon, key: str, *, face: str = "grpc", system: str = "rag", **options: Any) -> ConnectedClient:
    return connect_async(f"{face}://127.0.0.1:{process.ports()[face]}", system=system, key=key, **options)


@asynccontextmanager
async def here(config: Path, key: str = "") -> AsyncIterator[Callable[[str], AsyncClient]]:
    """The gateway in the test's own process; gives a client of each system."""
    async with Gateway(load_config(config)) as gateway:
        transport = open_transport(Endpoint(url=f"grpc://127.0.0.1:{gateway.ports['grpc']}", credential=key))
        yield lambda system: AsyncClient(transport, system=system)
        await transport.close()


def command(*words: str) -> Result:
    """The command `memdock-gateway` in the test's own process."""
    return CliRunner(env=dict.fromkeys(os.environ, None)).invoke(main, words)


def edit(config: Path, **changes: Any) -> None:
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | changes))


@pytest.mark.parametrize("lost", ["keys_file", "space_key", "audit_file"])
def test_without_a_protection_it_starts_only_on_request(tmp_path: Path, lost: str) -> None:
    config, _ = write_gateway(tmp_path, [{"name": "rag", "address": "grpc://127.0.0.1:9"}])
    content = yaml.safe_load(config.read_text())
    del content[lost]
    config.write_text(yaml.safe_dump(content))
    assert f"lacks {lost}" in refusal(config)
    assert "--insecure-dev" in refusal(config)


def test_what_is_insecure_listens_to_this_machine_alone(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    systems = [{"name": "rag", "address": "grpc://127.0.0.1:9"}]
    config.write_text(yaml.safe_dump({"listen": {"http": "0.0.0.0:0"}, "systems": systems}))
    assert "loopback" in refusal(config, "--insecure-dev")


async def test_an_insecure_gateway_asks_nobody_and_keeps_its_spaces(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    async with adapter(tmp_path) as address:
        listen = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0"}
        config.write_text(yaml.safe_dump({"listen": listen, "systems": [{"name": "rag", "address": address}]}))
        assert command("check", "--config", str(config), "--insecure-dev").exit_code == 0
        async with here(config) as caller:
            await caller("rag").add_turns("s", [TURN])
            await caller("rag").flush("s")
        async with here(config) as caller:
            assert len((await caller("rag").retrieve("s", "Kazan")).memories) == 1


@asynccontextmanager
async def adapter(folder: Path) -> AsyncIterator[str]:
    """A system in the test's process; its address."""
    async with Server(ToySystem(), SqliteLedger(folder / "ledger.db"), ServeOptions()) as server:
        yield f"grpc://127.0.0.1:{server.ports['grpc']}"


def test_a_mistake_is_told_by_line_and_field(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("systems:\n  - name: rag\n    address: grpc://127.0.0.1:9\n    deadline: 5\n")
    assert "gateway.yaml:4: systems[0].deadline: is not known here; did you mean deadline_s?" in refusal(config)


def test_a_missing_file_and_an_unknown_variable_are_told(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "nothing.yaml")
    config, _ = write_gateway(tmp_path, [{"name": "rag", "address": "grpc://127.0.0.1:9"}])
    assert "MEMDOCK_DEADLINE" in refusal(config, MEMDOCK_DEADLINE="5")


async def test_a_taken_port_is_told(tmp_path: Path) -> None:
    config, _ = write_gateway(tmp_path, [{"name": "rag", "address": "grpc://127.0.0.1:9"}])
    for face in ("grpc", "http"):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            edit(config, listen={"grpc": "127.0.0.1:0", "http": "127.0.0.1:0"} | {face: address})
            with pytest.raises(OSError, match=re.escape(address)):
                async with here(config):
                    pass


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"keys.json": "{"}, r"keys_file: \S*keys.json: is not JSON"),
        ({"space-keys.yaml": "keys: ["}, r"space_key.file: \S*space-keys.yaml: is not YAML"),
        ({"space-keys.yaml": None}, "space_key.file: .*its spaces could not be found. Restore the file from its copy"),
        ({"token": ""}, r"systems\[0\].token_file: \S*token must hold a credential of one line"),
        ({"token": "two\nlines"}, r"systems\[0\].token_file: \S*token must hold a credential of one line"),
        ({"api-key": "ключ"}, r"systems\[0\].header_files.X-Api-Key: \S*api-key cannot be read as a credential"),
        ({"ca.pem": "no PEM"}, r"systems\[0\].tls: its files must hold PEM"),
        ({"server.pem": "no PEM"}, "listen.tls: its files must hold PEM"),
        ({"audit.jsonl/": ""}, r"audit_file: \S*audit.jsonl cannot be written: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_by_line_and_field(
    tmp_path: Path, certificates: Certificates, damage: dict[str, str | None], sentence: str
) -> None:
    system = {"name": "rag", "address": "grpcs://127.0.0.1:9", "token_file": "token", "tls": {"ca_file": "ca.pem"}}
    system |= {"header_files": {"X-Api-Key": "api-key"}}
    tls = {"cert_file": "server.pem", "key_file": "server.key"}
    listen = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "tls": tls}
    config, _ = write_gateway(tmp_path, [system], listen=listen)
    for name in ("ca.pem", "server.pem", "server.key"):
        shutil.copy(certificates.folder / name, tmp_path)
    for name in ("token", "api-key"):
        (tmp_path / name).write_text("secret")
    assert command("check", "--config", str(config)).exit_code == 0
    for name, content in damage.items():
        if name.endswith("/"):
            (tmp_path / name).mkdir()
        elif content is None:
            write_space_keys(tmp_path / name, {1: new_space_key(1)})
        else:
            (tmp_path / name).write_text(content)
    told = refusal(config)
    assert re.search(rf"gateway\.yaml:\d+: {sentence}", told), told
    assert command("check", "--config", str(config)).output.split() == told.split()


async def test_the_space_key_is_rotated_system_by_system(tmp_path: Path) -> None:
    async with adapter(tmp_path) as address:
        config, keys = write_gateway(tmp_path, [{"name": name, "address": address} for name in ("rag", "moved")])
        async with here(config, keys["all"]) as caller:
            for system in ("rag", "moved"):
                await caller(system).add_turns("s", [TURN])
                await caller(system).flush("s")

        rotated = command("rotate-space-key", "--config", str(config))
        assert rotated.exit_code == 0
        content = yaml.safe_load(config.read_text())
        fingerprint = next(word for word in rotated.output.split() if word.startswith("sha256:"))
        content["space_key"]["fingerprints"][2] = fingerprint
        config.write_text(yaml.safe_dump(content))
        async with here(config, keys["all"]) as caller:
            for system in ("rag", "moved"):
                assert len((await caller(system).retrieve("s", "Kazan")).memories) == 1, "a new version moves nothing"
            await caller("moved").reset("s")

        content["systems"][1]["space_key_version"] = 2
        config.write_text(yaml.safe_dump(content))
        async with here(config, keys["all"]) as caller:
            assert len((await caller("rag").retrieve("s", "Kazan")).memories) == 1
            assert (await caller("moved").retrieve("s", "Kazan")).memories == ()
            assert not (await caller("moved").add_turns("s", [TURN])).results[0].duplicate
            await caller("moved").flush("s")
            assert len((await caller("moved").retrieve("s", "Kazan")).memories) == 1


async def test_a_killed_gateway_loses_nothing(tmp_path: Path) -> None:
    async with adapter(tmp_path) as address:
        config, keys = write_gateway(tmp_path, [{"name": "rag", "address": address}])
        process = daemon(config)
        sent: list[str] = []
        for number in range(2):
            async with started(process), client(process, keys["all"], timeout_s=10) as caller:
                turns = [
                    Turn(turn_id=f"{number}-{one}", session_id="s", role="user", text="Kazan") for one in range(20)
                ]
                sending = [asyncio.create_task(caller.add_turns("s", [turn])) for turn in turns]
                await asyncio.wait(sending, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.to_thread(process.kill)
                await asyncio.gather(*sending, return_exceptions=True)
            async with started(process), client(process, keys["all"]) as caller:
                await caller.add_turns("s", turns)
                sent += [turn.turn_id for turn in turns]
                await caller.flush("s")
                listed = [turn.turn_id async for turn in caller.list_turns("s")]
                assert sorted(listed) == sorted(sent)
                found = await caller.retrieve("s", "Kazan", top_k=100)
                assert len(found.memories) == len(sent), "none lost, none twice"


@pytest.mark.parametrize("face", ["grpc", "http"])
async def test_sigterm_answers_those_inside_and_refuses_the_rest(tmp_path: Path, face: str) -> None:
    release = asyncio.Event()

    async def slow(method: Method, request: Any, call: Call) -> Any:
        await release.wait()
        return method.response()

    service = ScriptedService(slow)
    async with faces_of(service) as faces:
        config, keys = write_gateway(tmp_path, [{"name": "rag", "address": faces.grpc}])
        process = daemon(config)
        async with started(process), client(process, keys["all"], face=face, timeout_s=10) as caller:
            inside = [asyncio.create_task(caller.retrieve("s", "q")) for _ in range(20)]
            await until(lambda: len(service.seen) == 20)
            stopping = asyncio.create_task(asyncio.to_thread(process.stop))
            await until(lambda: '"event":"draining"' in process.log)
            async with client(process, keys["all"], face=face, timeout_s=2) as late:
                with pytest.raises(MemdockError) as refused:
                    await late.retrieve("s", "q")
            assert (refused.value.reason, refused.value.http_status) == ("DRAINING", 503)
            release.set()
            assert len(await asyncio.gather(*inside)) == 20
            assert await stopping == 0
    assert len(service.seen) == 20


async def test_one_line_is_enough_to_try_a_system(tmp_path: Path) -> None:
    async with adapter(tmp_path) as address:
        flags = ["serve", "--insecure-dev", "--system", f"rag={address}", "--system", "other=grpc://127.0.0.1:9"]
        ports = ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        process = Daemon("gateway", "memdock-gateway", [*flags, *ports], tmp_path)
        async with started(process):
            for face in ("grpc", "http"):
                async with client(process, "", face=face) as caller:
                    await caller.add_turns("s", [TURN])
                    assert {one.system: one.ready for one in await caller.list_systems()} == {
                        "rag": True,
                        "other": False,
                    }
            assert await asyncio.to_thread(process.stop) == 0


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("", "give either --config FILE or, to try it without keys, --insecure-dev --system rag-dense=grpc://"),
        ("--insecure-dev", "give either --config FILE or"),
        ("--config x --system rag=grpc://127.0.0.1:9", "give either --config FILE or"),
        ("--config x --grpc 127.0.0.1:0", "with --config set listen.grpc"),
        ("--system rag=grpc://127.0.0.1:9", "say so with --insecure-dev"),
        ("--insecure-dev --system rag", "must be NAME=ADDRESS, such as rag-dense=grpc://"),
        ("--insecure-dev --system rag=", "must be NAME=ADDRESS"),
        ("--insecure-dev --system RAG=grpc://127.0.0.1:9", "systems[0].name: must begin with a-z"),
        ("--insecure-dev --system a=http://h --system a=http://h", "systems[1].name: the name a is there twice"),
        ("--insecure-dev --system rag=http://h --http 0.0.0.0:0", "listen.http: must be a loopback address"),
        ("--insecure-dev --system rag=http://h --http here", "listen.http: 'here' is not host:port"),
    ],
)
def test_a_line_that_cannot_be_tried_says_what_it_lacks(flags: str, sentence: str) -> None:
    refused = command("serve", *flags.split())
    assert refused.exit_code in (1, 2)
    assert isinstance(refused.exception, SystemExit), "no trace for a user"
    assert sentence in " ".join(refused.output.split())


def test_init_makes_a_gateway_that_can_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "gw"
    made = command("init", str(folder), "--system", "rag=http://127.0.0.1:9", "--tenant", "acme")
    assert made.exit_code == 0
    credential = (folder / "first.key").read_text().strip()
    assert credential not in made.output
    assert command("check", "--config", str(folder / "gateway.yaml")).exit_code == 0
    again = command("init", str(folder))
    assert (again.exit_code, "is there already" in again.output) == (1, True)
    assert (folder / "first.key").read_text().strip() == credential


def test_init_takes_a_name_that_yaml_would_take_for_something_else(tmp_path: Path) -> None:
    folder = tmp_path / "gw"
    systems = {"5": "http://127.0.0.1:9", "on": "grpc://127.0.0.1:9", "null": "grpc://[::1]:9"}
    made = command("init", str(folder), *(word for pair in systems.items() for word in ("--system", "=".join(pair))))
    assert made.exit_code == 0, made.output
    assert {one.name: one.address for one in load_config(folder / "gateway.yaml").systems} == systems


@pytest.mark.parametrize(
    "options",
    [
        ("--system", "RAG=grpc://x:1"),
        ("--system", "rag=ftp://x"),
        ("--system", "rag"),
        ("--system", "rag=http://x", "--system", "rag=http://y"),
        ("--tenant", ""),
    ],
)
def test_init_writes_nothing_when_it_cannot_write_all(tmp_path: Path, options: tuple[str, ...]) -> None:
    folder = tmp_path / "gw"
    refused = command("init", str(folder), *options)
    assert refused.exit_code != 0
    assert isinstance(refused.exception, SystemExit), "no trace for a user"
    assert not folder.exists()
