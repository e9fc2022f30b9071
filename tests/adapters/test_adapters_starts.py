"""What an adapter says at its start of a folder that it cannot serve: one sentence, and exit code 1."""

import os
import re
from pathlib import Path

import pytest

from support.adapters import Adapter, RunningAdapter, fill, running, turn
from support.model_server import ModelServer
from support.words import DIMENSION

STORES = ("ids.sqlite", "history.sqlite", "graph.kuzu", "chroma/chroma.sqlite3", "qdrant/meta.json", "turns.sqlite")
"""Files of a data folder, those that any adapter has."""


@pytest.fixture(scope="module")
def home(adapter: Adapter, models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder above the data of an adapter that has served and ended."""
    folder = tmp_path_factory.mktemp(adapter.name)
    with running(adapter, folder, models) as served, served.client() as client:
        fill(client, "one", turn("t1", "persimmon is my cat"))
    return folder


def refusal(adapter: Adapter, home: Path, models: ModelServer, **flags: str) -> str:
    """The sentence with which a start is refused; what else it writes are lines of the log."""
    log = home / f"{adapter.name}.log"
    log.unlink()
    given = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    with pytest.raises(AssertionError, match="ended while starting"), running(adapter, home, models, flags=given):
        raise RuntimeError("it serves")
    said = log.read_text(errors="replace")
    assert "Traceback" not in said
    (sentence,) = re.findall("^cannot serve: .+$", said, re.MULTILINE)
    return str(sentence)


@pytest.mark.parametrize(
    ("flag", "value", "was", "now"),
    [
        ("embedder_dimension", str(DIMENSION + 1), f"'e, {DIMENSION} numbers'", f"'e, {DIMENSION + 1} numbers'"),
        ("embedder_model", "f", f"'e, {DIMENSION} numbers'", f"'f, {DIMENSION} numbers'"),
    ],
)
def test_another_embedder_is_refused_and_the_first_is_not(
    adapter: Adapter, home: Path, models: ModelServer, flag: str, value: str, was: str, now: str
) -> None:
    if adapter.service is not None:
        pytest.skip("its embedder is the service's")
    said = refusal(adapter, home, models, **{flag: value})
    assert f"has the data of the embedder {was}, and this is {now}: give that, or another --data" in said
    with running(adapter, home, models) as served, served.client() as client:
        assert client.retrieve("one", "persimmon").memories


def test_a_second_process_on_the_folder_is_refused(served: RunningAdapter) -> None:
    log = served.process.log_file
    other = log.with_name("other")
    other.mkdir()
    (other / "data").symlink_to(served.folder)
    (other / log.name).touch()
    said = refusal(served.adapter, other, served.models)
    assert re.search(r"is in use by process \d+; stop that one, or give another --data", said)
    with served.client() as client:
        fill(client, "one", turn("t1", "persimmon is my cat"))


def test_a_damaged_file_is_told_in_a_sentence(adapter: Adapter, home: Path, models: ModelServer) -> None:
    files = [file for name in STORES if (file := home / "data" / name).exists()]
    assert files
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(os.urandom(max(8192, len(whole))))
        assert str(home / "data") in refusal(adapter, home, models), file
        file.write_bytes(whole)
    with running(adapter, home, models) as served, served.client() as client:
        assert [each.turn_id for each in client.list_turns("one")] == ["t1"]
