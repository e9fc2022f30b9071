"""A new adapter: its folder is written whole or not at all, its server starts, and it passes the core at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from memdock.conformance.scaffold import scaffold
from support.processes import Finished, clean_environment

ROOT = Path(__file__).parents[3]
FILES = {
    "README.md",
    "conformance.toml",
    "memdock_my_memory/__init__.py",
    "memdock_my_memory/cli.py",
    "memdock_my_memory/system.py",
    "pyproject.toml",
    "requirements.in",
}
SERVER = (
    f"{sys.executable} -m memdock_my_memory.cli serve"
    " --grpc 127.0.0.1:{port} --http 127.0.0.1:{http_port} --data {data}"
)


def run(module: str, *arguments: str | Path, beside: Path = ROOT) -> Finished:
    """A module as a command, with the packages in the folder `beside` installed."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=clean_environment({"PYTHONPATH": f"{beside}:{':'.join(sys.path)}"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Finished(code=done.returncode, output=done.stdout, errors=done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A new adapter."""
    done = run("memdock.conformance", "scaffold", "my-memory", "--into", tmp_path)
    assert done.code == 0, done.words
    assert f"{tmp_path / 'my-memory'} is written." in done.words
    return tmp_path / "my-memory"


def test_the_folder_is_whole(folder: Path) -> None:
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert set(paths) == FILES
    assert not [name for name, path in paths.items() if "{{" in path.read_text()]
    assert [path.name for path in folder.parent.iterdir()] == ["my-memory"]
    assert "class MyMemorySystem:" in paths["memdock_my_memory/system.py"].read_text()
    assert "memdock[http,reflection]" in paths["requirements.in"].read_text()


def test_in_a_clone_it_takes_the_pins_that_adapters_share(tmp_path: Path) -> None:
    (tmp_path / "protocol.in").touch()
    run("memdock.conformance", "scaffold", "x", "--into", tmp_path)
    assert "-r ../protocol.in" in (tmp_path / "x/requirements.in").read_text()


def test_its_code_is_clean(folder: Path) -> None:
    for words in (("check",), ("format", "--check")):
        done = run("ruff", *words, "--config", ROOT / "pyproject.toml", folder)
        assert done.code == 0, done.words


@pytest.mark.parametrize("name", ["", "My", "9lives", "a_b", "a--b", "a-", "../a", "a/b", "a\n", "a" * 41])
def test_a_bad_name_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="NAME must be at most 40 small letters"):
        scaffold(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_name_of_a_package_that_is_there_is_refused(tmp_path: Path) -> None:
    done = run("memdock.conformance", "scaffold", "gateway", "--into", tmp_path)
    assert done.code == 2
    assert "there is a package memdock_gateway already" in done.words
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_left_as_it_is(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("mine")
    done = run("memdock.conformance", "scaffold", "my-memory", "--into", folder.parent)
    assert done.code == 2
    assert f"{folder} exists already" in done.words
    assert (folder / "pyproject.toml").read_text() == "mine"


def test_its_server_starts(folder: Path) -> None:
    done = run("memdock.conformance", "--launch", SERVER, "--only", "T1,F2", "--core", beside=folder)
    assert done.code == 0, done.words
    assert "my-memory conforms: 2 passed, in" in done.words


def test_its_server_tells_in_a_sentence_what_it_cannot_be_started_with(folder: Path) -> None:
    done = run("memdock_my_memory.cli", "serve", "--data", folder / "README.md/data", beside=folder)
    assert (done.code, done.words) == (1, f"Error: {folder / 'README.md/data'}: Not a directory")
    done = run("memdock_my_memory.cli", "serve", "--http", "nowhere", "--data", folder / "data", beside=folder)
    assert done.code == 1
    assert "cannot listen on nowhere" in done.words


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_passes_the_core_and_what_a_kill_takes_is_known(folder: Path) -> None:
    done = run("memdock.conformance", "--launch", SERVER, "--core", beside=folder)
    assert done.code == 0, done.words
    known = ("--known-failures", folder / "conformance.toml")
    done = run("memdock.conformance", "--launch", SERVER, "--only", "F*,R*,T8,P8", *known, beside=folder)
    assert done.code == 0, done.words
    assert "3 known failures" in done.words


@pytest.mark.slow
def test_its_types_are_strict(folder: Path) -> None:
    done = run("mypy", "--strict", "--cache-dir", folder / "cache", folder / "memdock_my_memory", beside=folder)
    assert done.code == 0, done.words
