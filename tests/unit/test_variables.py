"""One shell may hold the variables of every program: each takes its own and refuses what nobody knows."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from memdock.cli.app import app, run
from memdock.variables import CLIENT, PREFIXES, unknown_variables
from memdock_embedder.cli import main as embedder
from memdock_evaluator.cli import main as evaluator
from memdock_gateway.cli import main as gateway
from memdock_meter.cli import main as meter
from memdock_pgvector.cli import main as pgvector

PROGRAMS = {
    "memdock": app,
    "memdock-embedder": embedder,
    "memdock-eval": evaluator,
    "memdock-gateway": gateway,
    "memdock-meter": meter,
    "memdock-pgvector": pgvector,
}


def variables_of(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter.envvar, str):
            yield parameter.envvar
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            assert one is not None
            yield from variables_of(one)


def test_each_variable_belongs_to_one_program() -> None:
    own = {name: set(variables_of(program)) for name, program in PROGRAMS.items()}
    assert own.pop("memdock") == CLIENT
    for variables in own.values():
        assert len({prefix for prefix in PREFIXES for name in variables if name.startswith(prefix)}) == 1
        assert all(name.startswith(PREFIXES) for name in variables)
    assert sum(map(len, own.values())) == len(set().union(*own.values()))


@pytest.mark.parametrize(
    "program", [embedder, gateway, meter, pgvector], ids=["embedder", "gateway", "meter", "pgvector"]
)
def test_a_server_passes_over_what_belongs_to_others_and_refuses_what_nobody_knows(program: click.Group) -> None:
    def serve(*names: str) -> tuple[int, str]:
        done = CliRunner().invoke(program, ["serve", "--help"], env=dict.fromkeys(names, "x"))
        return done.exit_code, done.output

    others = [name for other in PROGRAMS.values() if other is not program for name in variables_of(other)]
    assert serve(*others)[0] == 0
    (prefix,) = {prefix for prefix in PREFIXES for name in variables_of(program) if name.startswith(prefix)}
    for name in ("MEMDOCK_SISTEM", "MEMDOCK_DATABASE", f"{prefix.rstrip('_')}_FUSON"):
        code, output = serve(name)
        assert (code, name in output, "Usage" in output) == (1, True, False)


def test_the_client_passes_over_what_belongs_to_others_and_refuses_what_nobody_knows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = [name for other in PROGRAMS.values() for name in variables_of(other)]
    assert run(["ping", "--help"], dict.fromkeys(others, "x")) == 0
    assert run(["ping", "--help"], {"MEMDOCK_URI": "x"}) == 1
    assert "MEMDOCK_URI, which means nothing here" in capsys.readouterr().err


def test_the_unknown_ones_are_told_in_order() -> None:
    names = [
        "PATH",
        "MEMDOCK_B",
        "MEMDOCK_URL",
        "MEMDOCK_EVAL_X",
        "MEMDOCK_GATEWAY_B",
        "MEMDOCK_GATEWAY_A",
        "MEMDOCK_A",
    ]
    assert unknown_variables(names, {"MEMDOCK_GATEWAY_A"}) == ["MEMDOCK_A", "MEMDOCK_B", "MEMDOCK_GATEWAY_B"]
