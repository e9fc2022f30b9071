"""`memdock-eval demo` and `memdock-eval stack`: everything on this machine, with nothing to set up."""

import shlex
import shutil
import sys
import time
import webbrowser
from dataclasses import replace
from pathlib import Path

import click

from memdock_evaluator.dataset.shipped import OWN
from memdock_evaluator.interrupting import Notice, noticing
from memdock_evaluator.results.finalise import MANIFEST
from memdock_evaluator.run.command import carry_out
from memdock_evaluator.run.selection import Selection
from memdock_evaluator.run.settings import DataSource, RunSettings, SettingsError
from memdock_evaluator.stack import LocalStack, StackError, local_stack

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("demo")
@click.option("--out", default="runs/demo", show_default=True, type=_FOLDER, help="Results; made anew each time.")
@click.option("--work", default=".memdock", show_default=True, type=_FOLDER, help="Data, logs, cache of embeddings.")
@click.option("--dialogue", "dialogues", multiple=True, help="Only this dialogue (may be repeated), such as 0.")
def demo(out: Path, work: Path, dialogues: tuple[str, ...]) -> None:
    """Evaluate the reference memory on the bundled Russian and English dialogues.

    Starts rag-dense and rag-hybrid on an embedded PostgreSQL with the bundled embedder, and the gateway before them, on
    free ports of this machine; runs the evaluation through the gateway with a key; ends what it started. No model
    server is needed: the answers and verdicts come from deterministic rules, which is good for trying out the way and
    for retrieval figures, and says nothing about how well a model would answer.

    WORK/embeddings.sqlite keeps the embeddings of the bundled texts (by a hash, without the texts) so that the next
    demo is quick. It is the one thing that outlives a demo beside OUT and WORK/demo.
    """
    settings = _demo_settings(out, dialogues)
    _check(settings)
    _clear(out)
    cache = work / "embeddings.sqlite"
    click.echo("starting rag-dense, rag-hybrid and the gateway ...")
    try:
        with noticing() as notice, local_stack(work / "demo", notice, fresh=True, embedding_cache=cache) as stack:
            carry_out(_of_stack(settings, stack))
    except StackError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt as error:
        raise click.ClickException("interrupted; what was started has ended") from error
    click.echo(f"kept: {cache} (embeddings by hash, for the next demo), {work / 'demo'} (data and logs of this one)")
    if sys.stdout.isatty():
        webbrowser.open((out / "report.html").resolve().as_uri())


def _check(settings: RunSettings) -> None:
    """Refuses what the bundled data does not hold, before anything is deleted or started."""
    try:
        Selection(settings).survey()
    except SettingsError as error:
        raise click.UsageError(str(error)) from error


def _clear(out: Path) -> None:
    """Removes an earlier run's results, and nothing that is something else."""
    if not out.exists() or not any(out.iterdir()):
        return
    if not (out / MANIFEST).is_file():
        raise click.UsageError(f"--out {out} holds something else than a run: give an empty folder or a new one")
    shutil.rmtree(out)


def _demo_settings(out: Path, dialogues: tuple[str, ...]) -> RunSettings:
    """Of the flags alone: no variable of the environment changes a demo."""
    return RunSettings(
        baselines=("oracle", "refusal"),
        data=(DataSource(path=OWN),),
        dialogues=dialogues,
        out=str(out),
        command=("memdock-eval", *sys.argv[1:]),
    )


def _of_stack(settings: RunSettings, stack: LocalStack) -> RunSettings:
    return replace(settings, url=stack.grpc_url, key=stack.key_file.read_text().strip(), systems=stack.systems)


@click.command("stack")
@click.option("--work", default=".memdock/stack", show_default=True, type=_FOLDER, help="Data, keys and logs.")
@click.option("--grpc", default="127.0.0.1:7450", show_default=True, help="HOST:PORT of the gateway's gRPC face.")
@click.option("--http", default="127.0.0.1:7451", show_default=True, help="HOST:PORT of its HTTP face.")
def stack(work: Path, grpc: str, http: str) -> None:
    """Run the reference memory behind the gateway until Ctrl-C, to try a client or an evaluation against it.

    WORK keeps the data between starts. WORK/env puts the memdock command on the PATH, and sets what it, curl and
    grpcurl need:

    \b
      . .memdock/stack/env
      memdock ping
    """
    try:
        with noticing() as notice, local_stack(work, notice, grpc=grpc, http=http) as running:
            write_environment(work / "env", running.grpc_url, running.http_url, running.key_file)
            click.echo(f"ready: {running.grpc_url} and {running.http_url}, systems {', '.join(running.systems)}")
            click.echo(f"in another shell: . {work / 'env'}")
            _wait_for(notice, running)
    except StackError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt as error:
        raise click.ClickException("interrupted while starting; what was started has ended") from error


def _wait_for(notice: Notice, running: LocalStack) -> None:
    """Until the notice, or `StackError` where a part has ended."""
    while not notice.given:
        running.check()
        time.sleep(0.1)


def write_environment(path: Path, grpc_url: str, http_url: str, key_file: Path) -> None:
    """A file for a shell to source: the commands on its PATH, settings of `memdock`, `HTTP_URL` and `KEY` for curl."""
    lines = {
        "MEMDOCK_URL": grpc_url,
        "MEMDOCK_SYSTEM": "rag-hybrid",
        "MEMDOCK_KEY_FILE": str(key_file.resolve()),
        "GRPC_ADDRESS": grpc_url.removeprefix("grpc://"),
        "HTTP_URL": http_url,
    }
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in lines.items())
    commands = shlex.quote(str(Path(sys.executable).parent))
    found = f'case ":$PATH:" in *:{commands}:*) ;; *) export PATH={commands}:"$PATH" ;; esac\n'
    path.write_text(f'{exports}export KEY="$(cat "$MEMDOCK_KEY_FILE")"\n{found}')
