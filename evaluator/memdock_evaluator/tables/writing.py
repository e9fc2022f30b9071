"""The tables of a run as files."""

from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.suites.attached import Attached
from memdock_evaluator.summary.comparisons import Comparisons
from memdock_evaluator.summary.shape import Summary
from memdock_evaluator.tables.build import tables
from memdock_evaluator.tables.forms import FORMS

TABLES = "tables"


def write_tables(
    folder: Folder, summary: Summary, comparisons: Comparisons, manifest: Manifest, suites: Attached
) -> None:
    """Write `tables/NAME.{md,csv,json,tex}` into the folder of a run. Raises `FolderError`."""
    for table in tables(summary, comparisons, manifest, suites):
        for ending, form in FORMS.items():
            folder.write(f"{TABLES}/{table.name}.{ending}", form(table).encode())
