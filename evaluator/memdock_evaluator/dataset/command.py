"""`memdock-eval dataset`: check a data file, write it in another shape, print the schema of one's own.

Exit code 0: read to the end; 1: the file is broken, and the message says where; 2: the command line is wrong.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from memdock_evaluator.dataset.check import check_dataset
from memdock_evaluator.dataset.errors import DatasetError
from memdock_evaluator.dataset.export import SHAPES, export_dataset
from memdock_evaluator.dataset.formats import FORMATS, open_dataset
from memdock_evaluator.dataset.own import schema
from memdock_evaluator.dataset.report_text import print_report
from memdock_evaluator.dataset.shipped import OWN
from memdock_evaluator.dataset.zone import zone_option


class DataFile(click.Path):
    """A file that is there, or the bundled data by its name."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A path, or `OWN` as it stands."""
        return value if value == OWN else super().convert(value, param, ctx)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how to read a data file, named as the parameters of `open_dataset`."""
    for option in (
        zone_option,
        click.option("--language", metavar="CODE", help="Language of the dialogues, such as ru, if not as found."),
        click.option(
            "--format",
            type=click.Choice([known.name for known in FORMATS]),
            help="Format of the file; found from its first record if left out.",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except DatasetError as error:
        raise click.ClickException(str(error)) from error


@click.group("dataset")
def dataset() -> None:
    """Look into data files: RUMBA (both shapes), LoCoMo, LongMemEval, GigaMemory, and your own."""


@dataset.command("check")
@click.argument("path", type=DataFile())
@reading_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def check(path: Path | str, as_json: bool, **reading: Any) -> None:
    """Read PATH ("own": the bundled data) to its end and say what is in it.

    Sizes, questions by every slice, what was mended or left out, and what to know before a run. A file of the size of
    the published RUMBA is compared with its published sizes.
    """
    with _told():
        report = check_dataset(path, **reading)
    if as_json:
        click.echo(orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2))
    else:
        print_report(report, Console())


@dataset.command("export")
@click.argument("path", type=DataFile())
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--shape", type=click.Choice(SHAPES), required=True, help="RUMBA's rows or dialogues, or your own lines.")
@click.option("--force", is_flag=True, help="Replace OUTPUT where it is there already.")
@reading_options
def export(path: Path | str, output: Path, shape: str, force: bool, **reading: Any) -> None:
    """Read PATH ("own": the bundled data) and write it to OUTPUT in another shape, mended."""
    if output.exists() and not force:
        raise click.ClickException(f"{output} is there already: give another OUTPUT, or --force to replace it")
    with _told():
        size = export_dataset(open_dataset(path, **reading), shape, output)
    click.echo(f"{output}: {size:,} bytes")


@dataset.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a line of your own data (format `own`)."""
    click.echo(orjson.dumps(schema(), option=orjson.OPT_INDENT_2))
