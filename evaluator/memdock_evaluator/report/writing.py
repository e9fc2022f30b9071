"""From a run's folder to its `report.html`."""

from pathlib import Path

from memdock_evaluator.report.page import render
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.summary import summarise
from memdock_evaluator.summary.source import read_run

REPORT = "report.html"


def write_report(run_dir: Path | str) -> None:
    """Write `report.html` into the folder of a run (a path or a URL), from its rows, timings and manifest.

    The figures are computed from the rows again. Raises `RunFilesError`, `ManifestError` or `FolderError`.
    """
    folder = Folder(str(run_dir))
    run = read_run(folder)
    folder.write(REPORT, render(summarise(run.rows, run.timings, run.manifest), run.rows, run.manifest).encode())
