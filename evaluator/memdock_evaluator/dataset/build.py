"""Builds the files of the project's own data set: `python -m memdock_evaluator.dataset.build`.

The dialogues are written in `data/dialogues/*.yaml`. Both of RUMBA's shapes in both languages follow from them, and the
JSON Schema of one's own data from the reader; all are committed.
"""

from collections.abc import Sequence
from pathlib import Path

import click
import orjson

from memdock_evaluator.dataset.export import export_dataset
from memdock_evaluator.dataset.own import schema
from memdock_evaluator.dataset.shipped import DATA, LANGUAGES, own_dataset_path
from memdock_evaluator.dataset.written import WrittenDialogue, read_written

SCHEMA_FILE = "dialogue.schema.json"


def written_dialogues() -> list[WrittenDialogue]:
    """All dialogue files, by name."""
    return [read_written(path) for path in sorted((DATA / "dialogues").glob("*.yaml"))]


def build(into: Path) -> Sequence[Path]:
    """Write every file into a folder and return their paths; the same dialogues give the same bytes."""
    written = written_dialogues()
    paths = []
    for language in LANGUAGES:
        for shape in ("rows", "dialogues"):
            path = into / own_dataset_path(language, shape).name
            export_dataset((dialogue.read_in(language) for dialogue in written), shape, path)
            paths.append(path)
    schema_path = into / SCHEMA_FILE
    schema_path.write_bytes(orjson.dumps(schema(), option=orjson.OPT_INDENT_2) + b"\n")
    return [*paths, schema_path]


@click.command()
def main() -> None:
    """Write the data set's files anew."""
    for path in build(DATA):
        click.echo(f"{path.name}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
