"""From a run's folder to its `summary.json`, `statistics.json`, tables and `report.html`, in Russian too."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Compared
from memdock_evaluator.summary import Summary
from memdock_evaluator.summary.build import SUMMARY, summary_of, to_json
from memdock_evaluator.summary.source import RunFilesError, read_run

PAGES = {"en": "report.html", "ru": "report.ru.html"}
"""The file of the report in each language."""

_NOTHING = Compared()


def write_report(run_dir: Path | str, *, compared: Compared = _NOTHING, suites: Sequence[str] = ()) -> Summary:
    """Write all that is computed from the rows of a run into its folder (a path or a URL), and return the summary.

    That is `summary.json`, `statistics.json`, `tables/` and the files of `PAGES`. `compared`: what to compare; what it
    leaves open is as the manifest has it. `suites`: folders of forgetting or leaks whose results the run's folder is to
    have from now on. Raises `RunFilesError` (also for a system that the run does not have, and for a folder that is no
    suite of its systems), `ManifestError` or `FolderError`.
    """
    # Here, since numpy takes a while to load and a command line that is refused should not wait for it.
    from memdock_evaluator.report.page import packed_rows, render
    from memdock_evaluator.suites.attached import AttachError, attach, attached
    from memdock_evaluator.summary.comparisons import STATISTICS, compare, compared_in
    from memdock_evaluator.tables import write_tables

    folder = Folder(str(run_dir))
    run = read_run(folder)
    try:
        for suite in suites:
            attach(folder, run.manifest.plan, suite)
        beside = attached(folder, run.manifest.plan)
    except AttachError as error:
        raise RunFilesError(str(error)) from error
    try:
        comparisons = compare(run.rows, compared_in(run, compared), contestants=run.manifest.plan.systems)
    except ValueError as error:
        raise RunFilesError(f"{folder.address}: {error}") from error
    summary = summary_of(run)
    manifest = run.manifest
    explorer = packed_rows(summary, run.rows, manifest)
    # Their words are packed now, and are most of what a large run takes in memory.
    rows = [replace(row, memories=(), evidence=()) for row in run.rows]
    del run
    pages = {
        file: render(summary, rows, manifest, comparisons, beside, explorer, language=language, pages=PAGES)
        for language, file in PAGES.items()
    }
    folder.write(SUMMARY, to_json(summary))
    folder.write(STATISTICS, comparisons.to_json())
    write_tables(folder, summary, comparisons, manifest, beside)
    for file, page in pages.items():
        folder.write(file, page.encode())
    return summary
