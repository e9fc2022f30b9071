"""Secrets of files: the variable `..._FILE` in place of the value."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from memdock.secret_option import SecretOption


@click.command()
@click.option("--token", cls=SecretOption, envvar="MEMDOCK_X_TOKEN", default="")
def show(token: str) -> None:
    click.echo(f"<{token}>")


def ask(*typed: str, **variables: str) -> Result:
    return CliRunner().invoke(show, typed, env=variables)


def test_a_file_gives_the_value_without_the_end_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret, with spaces\n")
    assert ask(MEMDOCK_X_TOKEN_FILE=str(tmp_path / "token")).output == "<s3cret, with spaces>\n"


def test_what_is_typed_goes_before_the_file_and_nothing_means_the_default(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from the file")
    assert ask("--token", "typed", MEMDOCK_X_TOKEN_FILE=str(tmp_path / "token")).output == "<typed>\n"
    assert ask(MEMDOCK_X_TOKEN="value").output == "<value>\n"
    assert ask().output == "<>\n"
    assert ask(MEMDOCK_X_TOKEN_FILE="").output == "<>\n"


def test_both_at_once_are_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    said = ask(MEMDOCK_X_TOKEN="two", MEMDOCK_X_TOKEN_FILE=str(tmp_path / "token"))
    assert said.exit_code == 2
    assert "MEMDOCK_X_TOKEN and MEMDOCK_X_TOKEN_FILE are both set" in said.output


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b"one\ntwo", "must hold the value on one line"),
    ],
)
def test_a_file_that_holds_no_value_is_named_and_not_shown(tmp_path: Path, content: bytes | None, why: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    said = ask(MEMDOCK_X_TOKEN_FILE=str(file))
    assert said.exit_code == 2
    assert "MEMDOCK_X_TOKEN_FILE" in said.output
    assert why in said.output
    assert "two" not in said.output


def test_an_adapter_and_the_reference_memory_take_files() -> None:
    from memdock_pgvector.cli import main

    serve = main.commands["serve"]
    secrets = [option.envvar for option in serve.params if isinstance(option, SecretOption)]
    assert secrets == ["MEMDOCK_PGVECTOR_DATABASE", "MEMDOCK_PGVECTOR_EMBEDDER_KEY", "MEMDOCK_PGVECTOR_TOKEN"]
