"""An adapter's data folder: whose it is, and what a user is told of what cannot be opened."""

from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from memdock.adapter.command import Opened, adapter_command, option
from memdock.adapter.folder import data_folder, opening
from memdock.adapter.native_ids import NativeIds
from memdock.errors import UnavailableError

FACTS = {"system": "a", "embedder": "e, 3 numbers"}
SECRET = "hunter2-hunter2"


def test_the_same_facts_are_welcome_again(tmp_path: Path) -> None:
    for _ in range(2):
        with data_folder(tmp_path / "data", FACTS):
            assert (tmp_path / "data" / "embedder").read_text() == "e, 3 numbers\n"


@pytest.mark.parametrize("other", [{"system": "b"}, {"embedder": "e, 4 numbers"}, {"embedder": "f, 3 numbers"}])
def test_another_fact_is_refused_with_both_values_and_nothing_is_written(tmp_path: Path, other: dict[str, str]) -> None:
    with data_folder(tmp_path, FACTS):
        pass
    ((name, value),) = other.items()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    refused = pytest.raises(ValueError, match=f"the {name} '{FACTS[name]}', and this is '{value}'.*another --data")
    with refused, data_folder(tmp_path, {**FACTS, **other, "more": "x"}):
        raise AssertionError("it is held")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_at_once_are_refused_and_one_after_the_other_are_not(tmp_path: Path) -> None:
    refused = pytest.raises(UnavailableError, match=r"is in use by process \d+; stop that one, or give another --data")
    with data_folder(tmp_path, FACTS), refused, data_folder(tmp_path, FACTS):
        raise AssertionError("it is held twice")
    with data_folder(tmp_path, FACTS):
        pass


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"\n"])
def test_a_fact_that_is_none_is_told_by_its_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "embedder").write_bytes(content)
    with pytest.raises(ValueError, match=f"{tmp_path}.*embedder"), data_folder(tmp_path, FACTS):
        raise AssertionError("it is held")


class StrangeError(Exception):
    """What no caller of a framework expects."""


def serve(tmp_path: Path, raised: Exception | None, *words: str) -> Result:
    @asynccontextmanager
    async def open_system(_settings: Any) -> Opened:
        if raised is not None:
            raise raised
        NativeIds(tmp_path / "data" / "ids.sqlite").close()
        raise ValueError("nothing to serve")
        yield

    command = adapter_command("x", "x", open_system, (option("--database", "x", default="", secret=True),))
    models = ["--chat-url", "http://x", "--chat-model", "m", "--embedder-url", "http://x", "--embedder-model", "e"]
    given = ["serve", "--data", str(tmp_path / "data"), *models, "--embedder-dimension", "3", *words]
    return CliRunner().invoke(command, given)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (StrangeError("what\n  it  says"), "(StrangeError: what it says)"),
        (StrangeError(), "(StrangeError)"),
        (StrangeError(f"no host at postgresql://me:{SECRET}@db"), "(StrangeError)"),
        (ValueError("2 validation errors\nfor x"), "(ValueError: 2 validation errors for x)"),
    ],
)
def test_whatever_a_framework_raises_is_one_sentence_without_a_secret(
    tmp_path: Path, raised: Exception, told: str
) -> None:
    ended = serve(tmp_path, raised, "--database", f"postgresql://me:{SECRET}@db")
    secret_url = f"postgresql://me:{SECRET}@db"
    assert secret_url not in ended.output
    assert isinstance(ended.exception, SystemExit)
    (sentence,) = [line for line in ended.output.splitlines() if line.startswith("cannot serve: ")]
    assert ended.exit_code == 1
    assert told in sentence
    assert f"the store of {tmp_path / 'data'} cannot be opened" in sentence


@pytest.mark.parametrize("damage", [Path.mkdir, lambda path: path.write_bytes(b"no database " * 999)])
def test_a_damaged_file_of_native_ids_is_named(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    (tmp_path / "data").mkdir()
    damage(tmp_path / "data" / "ids.sqlite")
    ended = serve(tmp_path, None)
    assert ended.exit_code == 1
    assert f"cannot serve: the file of native ids {tmp_path / 'data' / 'ids.sqlite'} cannot be opened" in ended.output


def test_a_usage_error_and_an_error_of_ours_pass_as_they_are(tmp_path: Path) -> None:
    for fault in (click.UsageError("no"), UnavailableError("STORE_UNREACHABLE", "away"), OSError("full")):
        with pytest.raises(type(fault)) as passed, opening(tmp_path, []):
            raise fault
        assert passed.value is fault
