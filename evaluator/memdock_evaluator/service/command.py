"""`memdock-eval serve`: options and variables into settings; a server's end into a sentence."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click
import uvloop

from memdock.errors import MemdockError
from memdock.face import is_loopback
from memdock.log import set_up_logs
from memdock.tls import Tls, client_context
from memdock_evaluator.ranges import AT_ONCE, ITEMS, MONEY, Number
from memdock_evaluator.run.command import refuse_unknown_variables
from memdock_evaluator.run.options import lasting
from memdock_evaluator.service.faults import ServiceConfigError
from memdock_evaluator.service.offer import MOST_QUESTIONS, Offer, read_models, read_price_table
from memdock_evaluator.service.replica import Pace
from memdock_evaluator.service.server import ServiceSettings
from memdock_evaluator.service.server import serve as serve_until_told

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SECONDS = Number(min=0.1, max=3600)


@click.command("serve")
@click.option(
    "--results",
    required=True,
    callback=lasting,
    envvar="MEMDOCK_EVAL_SERVE_RESULTS",
    show_envvar=True,
    metavar="ADDRESS",
    help="Where runs and all that replicas know of them are: a folder, or an address such as s3://bucket/runs.",
)
@click.option(
    "--keys", type=_FILE, envvar="MEMDOCK_EVAL_SERVE_KEYS", show_envvar=True, help="Who may call; see `memdock keys`."
)
@click.option(
    "--insecure-dev", is_flag=True, help="Ask nobody for a key, on a loopback address only; in place of --keys."
)
@click.option(
    "--listen",
    default="127.0.0.1:7480",
    show_default=True,
    envvar="MEMDOCK_EVAL_SERVE_LISTEN",
    show_envvar=True,
    metavar="HOST:PORT",
    help="Port 0 takes any free one.",
)
@click.option(
    "--gateway",
    default="",
    envvar="MEMDOCK_EVAL_SERVE_GATEWAY",
    show_envvar=True,
    metavar="URL",
    help="The gateway of the systems that runs may name: grpc://host:port or http://host:port.",
)
@click.option(
    "--gateway-key-file",
    type=_FILE,
    envvar="MEMDOCK_EVAL_SERVE_GATEWAY_KEY_FILE",
    show_envvar=True,
    help="A file that holds its key.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="MEMDOCK_EVAL_SERVE_DATA",
    show_envvar=True,
    help="The folder of the data files that runs may name.  [default: the bundled data alone]",
)
@click.option(
    "--models",
    type=_FILE,
    envvar="MEMDOCK_EVAL_SERVE_MODELS",
    show_envvar=True,
    help="A YAML file of the answerers and judges that runs may name.",
)
@click.option(
    "--prices",
    type=_FILE,
    envvar="MEMDOCK_EVAL_SERVE_PRICES",
    show_envvar=True,
    help="Your price table in place of the shipped one.",
)
@click.option(
    "--budget-ceiling",
    type=MONEY,
    envvar="MEMDOCK_EVAL_SERVE_BUDGET_CEILING",
    show_envvar=True,
    metavar="MONEY",
    help="The most that a run may cost, and the budget of one that names none.",
)
@click.option(
    "--most-questions",
    type=ITEMS,
    default=MOST_QUESTIONS,
    show_default=True,
    envvar="MEMDOCK_EVAL_SERVE_MOST_QUESTIONS",
    show_envvar=True,
    metavar="N",
    help="The most questions that a run may ask: each for each system and k, as often as it is answered and judged.",
)
@click.option(
    "--places",
    type=AT_ONCE,
    default=1,
    show_default=True,
    envvar="MEMDOCK_EVAL_SERVE_PLACES",
    show_envvar=True,
    metavar="N",
    help="Runs at once in this replica; others wait.",
)
@click.option(
    "--most-open",
    type=ITEMS,
    default=100,
    show_default=True,
    metavar="N",
    help="Runs of a tenant that may wait or run.",
)
@click.option(
    "--lease",
    type=_SECONDS,
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="A replica that has told nothing for as long is gone, and another goes on with its runs.",
)
@click.option(
    "--beat",
    type=_SECONDS,
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often a replica tells how far its runs are, and looks for work.",
)
@click.option(
    "--docker",
    default="",
    envvar="MEMDOCK_EVAL_SERVE_DOCKER",
    show_envvar=True,
    metavar="URL",
    help="The engine that runs the systems' containers, as of `run --docker`: what they are and take goes into each "
    "run. An engine's socket makes its users root: better a proxy that only reads.  [default: not recorded]",
)
@click.option("--tls-cert", type=_FILE, help="PEM; with --tls-key.")
@click.option("--tls-key", type=_FILE, help="PEM; with --tls-cert.")
@click.option(
    "--port-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="MEMDOCK_EVAL_SERVE_PORT_FILE",
    show_envvar=True,
    help='Gets {"http": port} once calls are taken.',
)
@click.pass_context
def serve(context: click.Context, /, port_file: Path | None, **given: Any) -> None:
    """Start, follow and read runs over HTTP, with a page for people at /.

    A replica keeps nothing: all state is at ADDRESS, so any number of them serve it together, and another one goes on
    with the runs of one that is gone. Whoever starts a run names data, systems and models of this server; addresses
    and keys are never in a request.

    \b
    On this machine alone, with the bundled data and no models:
      memdock-eval serve --results runs --insecure-dev
    \b
    For others:
      memdock keys create --file keys.json --tenant team > team.key
      memdock-eval serve --results s3://bucket/runs --keys keys.json --listen 0.0.0.0:7480 \\
        --gateway grpc://gateway:7450 --gateway-key-file gateway.key --data data --models models.yaml \\
        --budget-ceiling 20
    """
    refuse_unknown_variables({option.envvar for option in context.command.params if isinstance(option.envvar, str)})
    try:
        settings = _settings(given)
    except ServiceConfigError as problem:
        raise click.UsageError(str(problem)) from None
    for name in [name for name in os.environ if name.startswith("MEMDOCK_")]:
        del os.environ[name]  # what stands there for `run` must not get into anybody's plan
    set_up_logs(sys.stdout.buffer)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve_until_told(settings, port_file))
    except (MemdockError, OSError) as problem:
        said = problem.message if isinstance(problem, MemdockError) else str(problem)
        raise click.ClickException(said) from None


def _settings(given: dict[str, Any]) -> ServiceSettings:
    if bool(given["keys"]) == given["insecure_dev"]:
        raise ServiceConfigError("give --keys FILE, or, to try it on this machine alone, --insecure-dev")
    if given["insecure_dev"] and not is_loopback(given["listen"]):
        raise ServiceConfigError("--listen must be a loopback address with --insecure-dev")
    if bool(given["tls_cert"]) != bool(given["tls_key"]):
        raise ServiceConfigError("--tls-cert and --tls-key go together")
    tls = Tls(cert_file=given["tls_cert"], key_file=given["tls_key"]) if given["tls_cert"] else None
    try:
        if tls:
            client_context(tls)
    except ValueError:
        raise ServiceConfigError("--tls-cert and --tls-key must hold PEM, the key that of the certificate") from None
    if given["beat"] * 3 > given["lease"]:
        raise ServiceConfigError("--lease must be three times --beat, or a late beat is taken for an end")
    key_file: Path | None = given["gateway_key_file"]
    if key_file and not given["gateway"]:
        raise ServiceConfigError("--gateway-key-file is for --gateway, which is missing")
    return ServiceSettings(
        results=_absolute(given["results"]),
        listen=given["listen"],
        keys=given["keys"],
        offer=Offer(
            gateway=given["gateway"],
            gateway_key_file=key_file and key_file.resolve(),
            data=given["data"] and given["data"].absolute(),
            models=read_models(given["models"]),
            prices=read_price_table(given["prices"]),
            prices_file=given["prices"] and given["prices"].resolve(),
            ceiling=given["budget_ceiling"],
            most_questions=given["most_questions"],
            docker=given["docker"],
        ),
        gateway_key=_key(key_file),
        places=given["places"],
        most_open=given["most_open"],
        pace=Pace(look_s=given["beat"], beat_s=given["beat"], lease_s=given["lease"]),
        tls=tls,
    )


def _absolute(address: str) -> str:
    """A run's process works in another folder."""
    return address.rstrip("/") if "://" in address else str(Path(address).absolute())


def _key(path: Path | None) -> str:
    try:
        return path.read_text("ascii").strip() if path else ""
    except (OSError, UnicodeDecodeError):
        raise ServiceConfigError(f"--gateway-key-file {path}: no key can be read from it") from None
