"""Every number of the command line has two ends, and beyond them is a sentence with the range."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memdock_evaluator.cli import main
from support.evaluation import write_data


def numbers(command: click.Command, *words: str) -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    """The words of each command with each of its parameters that is a number."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from numbers(inner, *words, name)
    for each in command.params:
        if isinstance(each.type, click.types.IntParamType | click.types.FloatParamType):
            yield words, each


ALL = list(numbers(main))


def test_every_number_has_a_range() -> None:
    assert len(ALL) > 40
    for words, each in ALL:
        kind = each.type
        assert isinstance(kind, click.IntRange | click.FloatRange), (words, each.name)
        assert kind.min is not None, (words, each.name)
        assert kind.max is not None, (words, each.name)


@pytest.mark.parametrize("written", ["99999999999999999999999", "1e400", "inf", "nan", "9" * 5000])
def test_beyond_it_is_a_sentence(written: str) -> None:
    for words, each in ALL:
        said = CliRunner().invoke(main, [*words, f"{each.opts[0]}={written}", *["1"] * (each.nargs - 1)])
        assert said.exit_code == 2, (words, each.name, said.output[:300])
        assert isinstance(said.exception, SystemExit), (words, each.name)
        assert f"Invalid value for '{each.opts[0]}" in said.output, (words, said.output[:300])


@pytest.mark.parametrize(
    "field", ["seed", "context-tokens", "repeats", "judge-repeats", "ingest-repeats", "k", "budget"]
)
def test_a_plan_file_is_held_to_the_same(tmp_path: Path, field: str) -> None:
    plan = tmp_path / "plan.yaml"
    data = write_data(tmp_path / "d.jsonl")
    plan.write_text(f"data: {data}\nout: {tmp_path / 'out'}\nbaseline: oracle\n{field}: {10**23}\n")
    said = CliRunner().invoke(main, ["run", "--plan", str(plan)])
    assert said.exit_code == 2, said.output
    assert f"plan.yaml, line 4: {field}: 1" in " ".join(said.output.split())
    assert "is not in the range" in said.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("written", ["1/1" + "0" * 5000, "1/0", "\u00b2/\u00b2", "1/9999999", "inf/inf"])
def test_a_shard_is_small_numbers(written: str) -> None:
    said = CliRunner().invoke(main, ["run", "--baseline", "oracle", "--data", "own", "--out", "x", "--shard", written])
    assert said.exit_code == 2
    assert "give i/n with i from 1 to n, such as 2/8" in " ".join(said.output.split())
