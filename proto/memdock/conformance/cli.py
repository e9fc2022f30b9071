"""The command `memdock-conformance`."""

import asyncio
import os
import random
import re
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from memdock.conformance.case import Case
from memdock.conformance.catalogue import CASES, choose
from memdock.conformance.faces import open_face
from memdock.conformance.known import KnownFailure, read_known_failures
from memdock.conformance.models import Models, Responder, echo, serving
from memdock.conformance.process import CannotRunError, Launched, free_port
from memdock.conformance.report import Report, print_report, write_cases, write_json, write_junit
from memdock.conformance.responders import read_responders
from memdock.conformance.run import Result, Verdict, run_cases
from memdock.conformance.scaffold import scaffold_command
from memdock.conformance.target import Commands, Settings, Target
from memdock.tls import Tls
from memdock.transport import Endpoint
from memdock.variables import CLIENT, unknown_variables

CONFORMS, DOES_NOT, USAGE, COULD_NOT_RUN = 0, 1, 2, 3
SCAFFOLD = "scaffold"

_FILE = click.Path(dir_okay=False, path_type=Path)
_EPILOG = """\b
Exit codes: 0 it conforms; 1 it does not; 2 what was typed is wrong; 3 the suite could not be run.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was typed."""

    urls: tuple[str, ...]
    launch: str
    model_listen: str
    responder: Responder
    key: str
    other_key: str
    system: str
    tls: Tls | None
    commands: Commands
    gateway: str
    settings: Settings
    cases: Sequence[Case]
    known: Sequence[KnownFailure]
    junit: Path | None
    json_file: Path | None


@click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "--launch",
    default="",
    metavar="COMMAND",
    help="Start the system by this command, so that it can be killed. Filled in: {port} {http_port} (free ports), "
    "{data} (a folder that stays over restarts), {model_url} (the scripted model server, ends in /v1).",
)
@click.option(
    "--model-listen",
    default="",
    metavar="HOST:PORT",
    help="Serve the scripted model server here for a system that runs already and asks it.",
)
@click.option(
    "--responders", type=_FILE, help="TOML: what the scripted model says to your own prompts (see the README)."
)
@click.option("--key", default="", envvar="MEMDOCK_KEY", help="Bearer key or token.")
@click.option("--other-key", default="", help="A key of another tenant, for what only two tenants show.")
@click.option("--system", default="", envvar="MEMDOCK_SYSTEM", help="The system's name, behind a gateway.")
@click.option("--ca-file", type=_FILE, envvar="MEMDOCK_CA_FILE", help="Whom to trust, for grpcs:// and https:// (PEM).")
@click.option("--only", default="", metavar="IDS", help="Cases, with commas: T1,R*.")
@click.option("--core", is_flag=True, help="Only what every server must keep and what needs nothing but an address.")
@click.option(
    "--known-failures", type=_FILE, help="TOML: cases that are known to fail, and why; one that passes is an error."
)
@click.option("--list", "list_only", is_flag=True, help="Tell the cases and what they prove; run nothing.")
@click.option("--seed", type=int, help="Of words and choices; drawn and printed where it is not given.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=90.0,
    show_default=True,
    help="Seconds that one case may take.",
)
@click.option(
    "--settle",
    "settle_s",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds to watch that nothing erased comes back.",
)
@click.option("--parallel", type=click.IntRange(min=1), default=8, show_default=True, help="Cases at once.")
@click.option("--store-down", default="", metavar="COMMAND", help="Takes the system's store away.")
@click.option("--store-up", default="", metavar="COMMAND", help="Brings it back.")
@click.option("--component-break", default="", metavar="COMMAND", help="Makes a component fail to erase.")
@click.option("--component-mend", default="", metavar="COMMAND", help="Mends it.")
@click.option("--gateway", default="", metavar="COMMAND", help="A gateway's command (memdock-gateway): G1 to G8.")
@click.option("--junit", type=_FILE, help="Write JUnit XML here.")
@click.option("--json", "json_file", type=_FILE, help="Write all results as JSON here; with --list: the cases.")
@click.version_option(package_name="memdock")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Hold a memory system, or a gateway, to the Memdock protocol.

    \b
      memdock-conformance grpc://127.0.0.1:7470 http://127.0.0.1:7471
      memdock-conformance --launch "my-server --grpc 127.0.0.1:{port} --http 127.0.0.1:{http_port}
                                    --data {data} --model {model_url}"
      memdock-conformance grpc://127.0.0.1:7450 --system rag-dense --key mdk_...
    Give both faces so that their answers are compared. Every case works in spaces of its own and resets them.

    `memdock-conformance scaffold NAME` writes the folder of a new adapter in Python.
    """
    try:
        if unknown := unknown_variables(os.environ, CLIENT):
            raise ValueError(f"the environment has {unknown[0]}, which means nothing here")
        cases = choose([one.strip() for one in given["only"].split(",") if one.strip()], core=given["core"])
        if given["list_only"]:
            _check_files(json=given["json_file"])
            _list(cases, given["json_file"])
            return
        options = _options(given, cases)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from None
    context.exit(asyncio.run(_run(options)))


def _options(given: dict[str, Any], cases: Sequence[Case]) -> Options:
    if not given["urls"] and not given["launch"]:
        raise ValueError("give the address of a face (grpc://host:port), or --launch and a command")
    if len(given["urls"]) > 2:
        raise ValueError("give one gRPC address and one HTTP address at most")
    tls = Tls(ca_file=given["ca_file"]) if given["ca_file"] else None
    for url in given["urls"]:
        Endpoint(url=url, credential=given["key"], tls=tls)
    if given["model_listen"] and not re.fullmatch(r".+:\d{1,5}", given["model_listen"]):
        raise ValueError("--model-listen must be HOST:PORT")
    _check_files(junit=given["junit"], json=given["json_file"])
    launch = given["launch"]
    for flag in ("launch", "store_down", "store_up", "component_break", "component_mend", "gateway"):
        _check_words(flag, given[flag])
    if launch and not given["urls"] and "{port}" not in launch and "{http_port}" not in launch:
        raise ValueError("--launch without an address needs {port} or {http_port} in its command")
    seed = given["seed"] if given["seed"] is not None else random.randrange(10**6)  # noqa: S311 - not a secret
    return Options(
        urls=given["urls"],
        launch=launch,
        model_listen=given["model_listen"],
        responder=read_responders(given["responders"]) if given["responders"] else echo,
        key=given["key"],
        other_key=given["other_key"],
        system=given["system"],
        tls=tls,
        commands=Commands(
            store_down=given["store_down"],
            store_up=given["store_up"],
            component_break=given["component_break"],
            component_mend=given["component_mend"],
        ),
        gateway=given["gateway"],
        settings=Settings(
            seed=seed, timeout_s=given["timeout_s"], settle_s=given["settle_s"], parallel=given["parallel"]
        ),
        cases=cases,
        known=read_known_failures(given["known_failures"], CASES) if given["known_failures"] else (),
        junit=given["junit"],
        json_file=given["json_file"],
    )


def _check_words(flag: str, line: str) -> None:
    try:
        shlex.split(line)
    except ValueError as problem:
        raise ValueError(f"--{flag.replace('_', '-')}: {problem}: {line}") from None


def _check_files(**files: Path | None) -> None:
    """Before the cases run, for minutes: whether there is a place for what they will have shown."""
    given = {flag: path.absolute() for flag, path in files.items() if path}
    if len(set(given.values())) < len(given):
        raise ValueError("--junit and --json name one file: give two")
    for flag, path in given.items():
        if not path.parent.is_dir():
            raise ValueError(f"--{flag} {path}: there is no folder {path.parent}; make it first")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise ValueError(f"--{flag} {path}: it cannot be written there; name another file")


async def _run(options: Options) -> int:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):  # a launched system must not outlive the suite
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    console = Console(highlight=False)
    progress = Console(stderr=True, highlight=False)
    started = time.monotonic()
    total = sum(1 if case.once else 2 for case in options.cases)
    try:
        async with opened(options) as target:
            with progress.status("running", spinner="line") as status:
                ended = 0

                def told(result: Result) -> None:
                    nonlocal ended
                    ended += 1
                    status.update(f"{ended} of {total}: {result.case.id} over {result.face} {result.verdict}")
                    if result.verdict in (Verdict.FAILED, Verdict.UNEXPECTED):
                        progress.print(f"{result.case.id} over {result.face}: {result.reason}", markup=False)

                total = sum(1 if case.once else len(target.faces) for case in options.cases)
                results = await run_cases(options.cases, target, options.settings, known=options.known, told=told)
    except asyncio.CancelledError:
        progress.print("memdock-conformance: stopped")
        return COULD_NOT_RUN
    except (CannotRunError, OSError) as problem:
        progress.print(f"memdock-conformance: cannot be run: {problem}", markup=False, soft_wrap=True)
        return COULD_NOT_RUN
    report = Report(target=target, settings=options.settings, results=results, seconds=time.monotonic() - started)
    print_report(report, console)
    for path, write in ((options.junit, write_junit), (options.json_file, write_json)):
        try:
            if path:
                write(report, path)
        except OSError as problem:
            said = f"the results above cannot be written to {path}: {problem.strerror}"
            progress.print(f"memdock-conformance: {said}", markup=False, soft_wrap=True)
            return COULD_NOT_RUN
    return CONFORMS if report.conforms else DOES_NOT


@asynccontextmanager
async def opened(options: Options) -> AsyncIterator[Target]:
    """The target, described and ready; ends the model server, the process and the folder with the block."""
    async with AsyncExitStack() as ends:
        models = None
        if options.model_listen or "{model_url}" in options.launch:
            address = options.model_listen or "127.0.0.1:0"
            try:
                models = await ends.enter_async_context(serving(Models(options.responder), address))
            except OSError as problem:
                raise CannotRunError(f"--model-listen {address}: {problem.strerror}; name a free port") from None
        urls, process = options.urls, None
        if options.launch:
            name = ends.enter_context(tempfile.TemporaryDirectory(prefix="memdock-conformance-"))
            os.chmod(name, 0o755)  # noqa: S103 - a database that refuses to run as root must be able to pass
            folder = Path(name)
            line, urls = _filled(options, folder, models.url if models else "")
            process = Launched(line, folder / "system.log")
            ends.push_async_callback(process.stop)
            await process.start()
        keys = (options.key, *((options.other_key,) if options.other_key else ()))
        faces = [[open_face(Endpoint(url=url, credential=key, tls=options.tls)) for url in urls] for key in keys]
        for face in [face for some in faces for face in some]:
            ends.push_async_callback(face.close)
        target = Target(
            faces=tuple(faces[0]),
            urls=urls,
            key=options.key,
            system=options.system,
            models=models,
            process=process,
            commands=options.commands,
            other=tuple(faces[1]) if len(faces) > 1 else (),
            gateway=options.gateway,
        )
        if process is not None or options.model_listen:  # who waits for the model cannot be there before it
            await target.wait_ready()
        await target.describe()
        yield target


def _filled(options: Options, folder: Path, model_url: str) -> tuple[str, tuple[str, ...]]:
    """The command with its places filled in, and the addresses of its faces."""
    places = {"port": free_port(), "http_port": free_port(), "data": folder / "data", "model_url": model_url}
    line = options.launch
    for name, value in places.items():
        line = line.replace(f"{{{name}}}", str(value))
    urls = options.urls or tuple(
        f"{scheme}://127.0.0.1:{places[name]}"
        for scheme, name in (("grpc", "port"), ("http", "http_port"))
        if f"{{{name}}}" in options.launch
    )
    return line, urls


def _list(cases: Sequence[Case], json_file: Path | None) -> None:
    if json_file:
        write_cases(cases, json_file)
        return
    for case in cases:
        wants = [*(f"FEATURE_{feature}" for feature in case.features), *case.needs]
        click.echo(f"{case.id:<12} {case.level:<8} {case.title}" + (f"  [{', '.join(wants)}]" if wants else ""))
        click.echo(f"{'':<21} {case.proves}")


def main() -> None:
    """Runs the command and exits."""
    if sys.argv[1:2] == [SCAFFOLD]:  # addresses stand where a group has its commands
        scaffold_command(sys.argv[2:], prog_name=f"memdock-conformance {SCAFFOLD}")
    command(prog_name="memdock-conformance")
    sys.exit(CONFORMS)
