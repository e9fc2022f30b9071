"""`memdock-eval capacity`: how long evaluations take and what they cost, before there is anything to run them on."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from types import MappingProxyType
from typing import Any, TypeVar

import click
import orjson

from memdock_evaluator.capacity.shape import Platform, Prediction, Workload
from memdock_evaluator.capacity.simulation import predict
from memdock_evaluator.cost.prices import PriceError, read_prices
from memdock_evaluator.ranges import MAX_ITEMS, SEED, Number

Command = TypeVar("Command", bound=Callable[..., Any])

HELP: Mapping[str, str] = MappingProxyType(
    {
        "systems": "Memory systems.",
        "data_sets": "Data sets; each system is run on each.",
        "dialogues": "Of a data set.",
        "requests": "AddTurns of a dialogue.",
        "questions": "Of a dialogue.",
        "answer_tokens": "Of an answer's call, in and out.",
        "judge_tokens": "Of a verdict's call, in and out.",
        "systems_at_once": "Jobs beside each other, each on a system of its own.",
        "indexes": "Processes of each Job.",
        "dialogues_at_once": "Of an index.",
        "parallel_questions": "Searches of a dialogue at once.",
        "add_s": "Seconds of a round trip of AddTurns.",
        "embedder_cores": "Cores that embed.",
        "embed_s": "Seconds of a core to embed a request's text.",
        "embed_query_s": "The same of a question.",
        "database_cores": "Cores of the database.",
        "store_s": "Seconds of a core to store a request.",
        "search_s": "The same to search.",
        "connections": "The database's connections; 0: no bound.",
        "connections_per_system": "What each system takes of them.",
        "call_s": "Seconds of a model's call.",
        "call_spread": "Standard deviation of the logarithm of that.",
        "provider_calls": "Calls at once that the provider bears.",
        "provider_calls_per_minute": "And a minute; 0: no bound.",
        "evaluator_s": "Seconds of an index's core for a question.",
        "parts": "Uploads of a dialogue.",
        "upload_s": "Seconds of an upload.",
        "uploads_per_second": "What the results' store takes; 0: no bound.",
        "lease_s": "Seconds after which an index writes its lease again.",
        "core_hour": "Money of a core's hour.",
    }
)
_MAY_BE_0 = ("connections", "parts")
_ABOVE_0 = ("embedder_cores", "database_cores", "lease_s")


def _options(command: Command) -> Command:
    for shape in (Platform, Workload):
        for field in reversed(fields(shape)):
            assert field.default is not MISSING
            number: click.ParamType[Any] = click.IntRange(min=0 if field.name in _MAY_BE_0 else 1, max=MAX_ITEMS)
            if field.type is float:
                number = Number(min=0, min_open=field.name in _ABOVE_0, max=MAX_ITEMS)
            command = click.option(
                f"--{field.name.replace('_', '-')}",
                field.name,
                type=number,
                nargs=2 if isinstance(field.default, tuple) else 1,
                default=field.default,
                show_default=True,
                metavar="N" + " N" * isinstance(field.default, tuple),
                help=HELP[field.name],
            )(command)
    return command


@click.command("capacity")
@_options
@click.option("--model", default="gpt-4.1-mini", show_default=True, help="Whose prices answers and verdicts have.")
@click.option("--seed", type=SEED, metavar="N", default=0, show_default=True, help="Of the models' times.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def capacity(model: str, seed: int, as_json: bool, **given: Any) -> None:
    """Simulate how long evaluations take, what they cost, and what ends first.

    A simulation of discrete events over the sizes and times that the options say; nothing is asked. k8s/README.md has
    figures from one laptop to 1,000 systems on 100 data sets, and how far the simulation is from what was measured.

    \b
      memdock-eval capacity
      memdock-eval capacity --systems 100 --data-sets 10 --systems-at-once 20 --indexes 17 --embedder-cores 64 \\
        --database-cores 16 --connections 400 --provider-calls 2000
    """
    work = Workload(**{field.name: given[field.name] for field in fields(Workload)})
    platform = Platform(**{field.name: given[field.name] for field in fields(Platform)})
    try:
        prices = read_prices()
    except PriceError as error:
        raise click.ClickException(str(error)) from error
    if (price := prices.of(model)) is None:
        raise click.UsageError(f"--model {model}: the price table does not know it; it has {', '.join(prices.models)}")
    try:
        found = predict(work, platform, price, seed=seed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(orjson.dumps({**asdict(found), "limit": found.limit}, option=orjson.OPT_INDENT_2))
        return
    _tell(work, platform, found, prices.currency)


def _tell(work: Workload, platform: Platform, found: Prediction, currency: str) -> None:
    asked = work.all_dialogues * work.questions
    click.echo(f"{work.systems:,} systems on {work.data_sets:,} data sets: {asked:,} questions, {found.calls:,} calls")
    if found.systems_at_once < platform.systems_at_once:
        click.echo(
            f"of {platform.systems_at_once:,} systems at once {found.systems_at_once:,} get their connections: "
            f"{platform.connections:,}, at {platform.connections_per_system} each"
        )
    click.echo(f"{duration(found.seconds)}; a dialogue is on its way for {duration(found.dialogue_s)}")
    click.echo(f"models {found.models:,.2f} {currency}, machines {found.machines:,.2f} ({platform.cores:,.0f} cores)")
    click.echo(f"what ends first: {found.limit}")
    for name, used in sorted(found.used.items(), key=lambda each: -each[1]):
        click.echo(f"  {name}: {100 * used:.0f} % of its time")


def duration(seconds: float) -> str:
    """ "3.2 hours"."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.1f} {name}"
    return f"{seconds:.1f} seconds"
