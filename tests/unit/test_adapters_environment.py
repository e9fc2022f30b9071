"""A framework's source comes at the pinned commit from wherever it is said to be, or is told to be away."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from support import adapters
from support.processes import Finished, free_port, run_command

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment() -> ModuleType:
    spec = importlib.util.spec_from_file_location("adapters_environment", ROOT / "adapters" / "environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str]:
    """A repository whose pinned commit is not its newest: its folder, and that commit."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", "-C", folder, *who, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet")
    for words in ("pinned", "newer"):
        (folder / "file").write_text(words)
        git("add", "file")
        git("commit", "--quiet", "-m", words)
    return folder, git("rev-parse", "HEAD~1")


def fetch(environment: ModuleType, pin: str, clone: Path) -> str:
    clone.mkdir()
    fetched: str = environment._fetch("cortex", pin, clone)
    return (Path(fetched) / "file").read_text()


def test_the_pinned_commit_is_had_from_its_address(
    environment: ModuleType, repository: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, commit = repository
    monkeypatch.delenv("MEMDOCK_CORTEX_SOURCE", raising=False)
    assert fetch(environment, f"git+{folder.as_uri()}@{commit}", tmp_path / "clone") == "pinned"


def test_the_variable_goes_before_the_address(
    environment: ModuleType, repository: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, commit = repository
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("MEMDOCK_CORTEX_SOURCE", "repository")  # from where one is
    assert fetch(environment, f"git+http://127.0.0.1:{free_port()}/@{commit}", tmp_path / "clone") == "pinned"


@pytest.mark.parametrize("what", ["no address", "no folder", "no commit"])
def test_what_cannot_be_had_says_what_to_do(
    what: str,
    environment: ModuleType,
    repository: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, commit = repository
    given = {"no address": "", "no folder": str(tmp_path / "nowhere"), "no commit": str(folder)}[what]
    monkeypatch.setenv("MEMDOCK_CORTEX_SOURCE", given)
    if what == "no commit":
        commit = "0" * 40
    with pytest.raises(SystemExit) as ended:
        fetch(environment, f"git+http://127.0.0.1:{free_port()}/@{commit}", tmp_path / "clone")
    assert ended.value.code == environment.SOURCE_AWAY == adapters.SOURCE_AWAY
    said = capsys.readouterr().err
    assert "set MEMDOCK_CORTEX_SOURCE to a clone of its repository that has the commit" in said
    assert commit in said


def test_the_source_alone_is_put_into_a_new_folder_whole_or_not_at_all(
    environment: ModuleType, repository: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, commit = repository
    monkeypatch.setenv("MEMDOCK_CORTEX_SOURCE", str(folder))
    pin = tmp_path / "source.txt"
    monkeypatch.setattr(environment, "source", lambda name: pin)
    into = tmp_path / "sources" / "cortex"
    pin.write_text(f"git+https://host/repository@{'0' * 40}")
    with pytest.raises(SystemExit):
        environment._put_source("cortex", into)
    assert list(into.parent.iterdir()) == []
    pin.write_text(f"git+https://host/repository@{commit}")
    environment._put_source("cortex", into)
    assert (into / "file").read_text() == "pinned"
    with pytest.raises(SystemExit, match="is there already; nothing was fetched"):
        environment._put_source("cortex", into)
    monkeypatch.setenv("MEMDOCK_CORTEX_SOURCE", str(into))  # it is a clone itself, from which an image has it
    environment._put_source("cortex", tmp_path / "again")
    assert (tmp_path / "again" / "file").read_text() == "pinned"


def test_a_pin_without_a_whole_commit_is_refused(environment: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="the commit in 40 digits"):
        fetch(environment, "git+https://host/repository@main", tmp_path / "clone")


def run(*words: str, home: Path) -> Finished:
    return run_command(sys.executable, ROOT / "adapters/environment.py", *words, environment=at(home))


def at(home: Path) -> dict[str, str]:
    return {"MEMDOCK_ENVIRONMENTS": str(home)}


@pytest.mark.parametrize("name", ["mem0/", "../adapters/mem0", "./mem0", "mem0/../mem0", "", ".", "examples", "*"])
def test_only_an_adapters_own_name_is_taken(name: str, tmp_path: Path) -> None:
    ended = run("mem0", name, home=tmp_path)
    assert (ended.code, ended.output) == (1, "")
    assert f"there is no adapter {name!r} with an environment of its own: known are cortex, graphiti" in ended.words
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "more"])
def test_a_home_that_is_a_file_is_told(below: str, tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.write_text("x")
    ended = run("mem0", home=home / below)
    assert ended.code == 1
    (sentence,) = ended.errors.strip().splitlines()
    assert sentence.startswith(f"nothing could be put into {home / below}: ")


def test_several_are_printed_in_their_order_and_one_that_is_missing_is_told(
    environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDOCK_ENVIRONMENTS", str(tmp_path))
    folders = [environment.folder_of(name) for name in ("memos", "mem0")]
    folders[0].mkdir()
    (folders[0] / environment.READY).touch()
    assert run("--built", "memos", "mem0", home=tmp_path).code == 1
    folders[1].mkdir()
    (folders[1] / environment.READY).touch()
    for flags in ([], ["--built"]):
        ended = run(*flags, "memos", "mem0", home=tmp_path)
        assert (ended.code, ended.output.split()) == (0, [str(folder) for folder in folders])


@pytest.mark.parametrize("path", sorted((ROOT / "adapters").glob("*/source.txt")), ids=lambda path: path.parent.name)
def test_an_adapter_tells_the_commit_that_is_pinned(path: Path) -> None:
    commit = path.read_text().strip().rpartition("@")[2]
    assert re.fullmatch("[0-9a-f]{40}", commit)
    name = path.parent.name
    assert f'COMMIT = "{commit}"' in (path.parent / f"memdock_{name}" / "framework.py").read_text()


def test_tests_of_a_framework_that_is_away_are_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    away = SimpleNamespace(returncode=adapters.SOURCE_AWAY, stdout="", stderr="building ...\nthe source is away\n")
    monkeypatch.setattr(adapters, "_built", lambda name: away)
    with pytest.raises(pytest.skip.Exception, match="cortex is not tested: the source is away"):
        adapters.environment("cortex")
