"""The command `memdock`: where it speaks to, and how it ends."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click
from click.core import ParameterSource

from memdock.cli.adding import add, flush
from memdock.cli.asking import describe, export, ping, retrieve, turns
from memdock.cli.erasing import forget, reset
from memdock.cli.key_commands import keys
from memdock.cli.target import Target
from memdock.errors import MemdockError
from memdock.tls import Tls
from memdock.variables import CLIENT, unknown_variables

_FILE = click.Path(dir_okay=False, path_type=Path)


_EPILOG = """Each command has its own --help with examples.

Exit codes: 0 done; 1 refused or failed (the service, a file, an input line, a variable); 2 what was typed is wrong.
"""


@click.group(epilog=_EPILOG)
@click.option(
    "--url",
    default="grpc://127.0.0.1:7450",
    show_default=True,
    envvar="MEMDOCK_URL",
    help="grpc://host:port, grpcs://host:port, http://host:port[/prefix] or https://...",
)
@click.option(
    "--system", default="", envvar="MEMDOCK_SYSTEM", help="The memory system's name; a lone server needs none."
)
@click.option("--key", default="", envvar="MEMDOCK_KEY", help="The API key. On a shared machine prefer --key-file.")
@click.option("--key-file", type=_FILE, envvar="MEMDOCK_KEY_FILE", help="A file that holds the API key alone.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.001),
    default=60.0,
    show_default=True,
    envvar="MEMDOCK_TIMEOUT",
    help="Seconds that one call may take.",
)
@click.option("--ca-file", type=_FILE, envvar="MEMDOCK_CA_FILE", help="Whom to trust, for grpcs:// and https:// (PEM).")
@click.option("--cert-file", type=_FILE, envvar="MEMDOCK_CERT_FILE", help="Our certificate, for mutual TLS (PEM).")
@click.option("--cert-key-file", type=_FILE, envvar="MEMDOCK_CERT_KEY_FILE", help="Its private key (PEM).")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON, for programs.")
@click.version_option(package_name="memdock")
@click.pass_context
def app(
    context: click.Context,
    url: str,
    system: str,
    key: str,
    key_file: Path | None,
    timeout_s: float,
    ca_file: Path | None,
    cert_file: Path | None,
    cert_key_file: Path | None,
    as_json: bool,
) -> None:
    """Speak to a conversational memory: any memory system, or a gateway in front of many.

    A space holds what was said; turns are added to it, and memories are found in it again:

    \b
      export MEMDOCK_URL=http://127.0.0.1:7451 MEMDOCK_SYSTEM=rag-hybrid MEMDOCK_KEY_FILE=key.txt
      memdock ping
      memdock add anna --session s1 --turn-id t1 --role user --text "I moved to Kazan in May."
      memdock flush anna
      memdock retrieve anna "Where does she live?"
      memdock forget anna --turn t1
      memdock reset anna
    """
    key = _key(context, key, key_file)
    tls = Tls(ca_file=ca_file, cert_file=cert_file, key_file=cert_key_file) if ca_file or cert_file else None
    context.obj = Target(
        url=url,
        system=system,
        key=key,
        timeout_s=timeout_s,
        tls=tls,
        as_json=as_json,
    )


for command in (ping, describe, add, flush, retrieve, forget, reset, turns, export, keys):
    app.add_command(command)


def main() -> None:
    """Runs the command and exits: one sentence for each failure, no trace."""
    sys.exit(run(sys.argv[1:], os.environ))


def run(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Runs the command; the exit code."""
    try:
        _check_environment(environment)
        result = app.main(arguments, prog_name="memdock", standalone_mode=False)
    except click.NoSuchOption as problem:
        click.UsageError(problem.format_message() + _place_of(problem.option_name), problem.ctx).show()
        return 2
    except click.UsageError as problem:
        problem.show()
        return 2
    except UnicodeEncodeError:
        click.echo("memdock: an argument is not UTF-8", err=True)
        return 2
    except click.Abort:
        click.echo("stopped", err=True)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit is quiet
        return 1
    except click.ClickException as problem:
        click.echo(f"memdock: {problem.message}", err=True)
        return 1
    except ValueError as problem:  # a `ConfigurationError` too
        click.echo(f"memdock: {problem}", err=True)
        return 1
    except MemdockError as error:
        _print_error(error)
        return 1
    return result if isinstance(result, int) else 0


def _place_of(option: str) -> str:
    """Where an option goes that stands before the command; empty for any other one."""
    ours = {name for parameter in app.params for name in parameter.opts}
    return f" {option} stands before the command: memdock {option} ... COMMAND" if option in ours else ""


def _print_error(error: MemdockError) -> None:
    click.echo(f"memdock: {error.message} ({error.reason})", err=True)
    for item in error.fields[1:]:
        click.echo(f"  {item.field}: {item.description}", err=True)
    if error.reason == "CREDENTIAL_MISSING":
        click.echo("  Give the key: --key-file FILE before the command, or the variable MEMDOCK_KEY_FILE.", err=True)


def _check_environment(environment: Mapping[str, str]) -> None:
    unknown = unknown_variables(environment, CLIENT)
    if unknown:
        raise click.ClickException(
            f"the environment has {unknown[0]}, which means nothing here; known: {', '.join(sorted(CLIENT))}"
        )


def _key(context: click.Context, key: str, file: Path | None) -> str:
    """The key, typed or of a file; what was typed beats a variable of the environment."""
    if not file:
        return key
    if not key:
        return _read_key(file)
    key_is_typed, file_is_typed = (
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ("key", "key_file")
    )
    if key_is_typed == file_is_typed:
        names = ("--key", "--key-file") if key_is_typed else ("MEMDOCK_KEY", "MEMDOCK_KEY_FILE")
        raise click.UsageError(f"give {names[0]} or {names[1]}, not both")
    return key if key_is_typed else _read_key(file)


def _read_key(file: Path) -> str:
    try:
        key = file.read_text(encoding="utf-8").strip()
    except OSError as problem:
        raise click.ClickException(f"--key-file {file}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"--key-file {file}: is not UTF-8 text") from None
    if not key:
        raise click.ClickException(f"--key-file {file}: holds no key")
    return key
