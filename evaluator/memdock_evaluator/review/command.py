"""`memdock-eval verify` and `show`: the files of a run against each other, and one question with all that is known."""

import click

from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.review.show import ShowError
from memdock_evaluator.review.show import show as show_question
from memdock_evaluator.review.verify import VerifyError
from memdock_evaluator.review.verify import verify as verify_run
from memdock_evaluator.summary import RunFilesError
from memdock_evaluator.words import counted


@click.command("verify")
@click.argument("run_dir", metavar="RUN")
def verify(run_dir: str) -> None:
    """Check the files of RUN against each other, from the parts to the last figure of summary.json.

    Parts by their checksums, rows and timings by the parts, the manifest's counts by the rows, and every figure
    computed from the rows again. Exit code 1: they do not agree; the message names the first difference.

    \b
      memdock-eval verify runs/demo
    """
    try:
        found = verify_run(Folder(run_dir))
    except VerifyError as error:
        raise click.ClickException(f"{run_dir}: {error}") from error
    except (RunFilesError, ManifestError, PartError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    parts, rows, figures = counted(found.parts, "part"), counted(found.rows, "row"), counted(found.figures, "figure")
    click.echo(f"{run_dir}: {parts}, {rows} and {figures} agree")


@click.command("show")
@click.argument("run_dir", metavar="RUN")
@click.argument("question")
@click.option("--system", "systems", multiple=True, metavar="NAME", help="Only this system; may be repeated.")
@click.option("--language", "languages", multiple=True, metavar="CODE", help="Only this language; may be repeated.")
def show(run_dir: str, question: str, systems: tuple[str, ...], languages: tuple[str, ...]) -> None:
    """Show one question of RUN with everything: evidence, memories, answer, verdict, scores, tokens, times.

    QUESTION is its id, or DIALOGUE/ID where several dialogues have it. A "+" marks a source that is evidence. The
    evidence's texts come from the data file, as long as it is where it was and unchanged.

    \b
      memdock-eval show runs/demo 0/q3 --system rag-hybrid
    """
    try:
        lines = list(show_question(Folder(run_dir), question, languages=languages, systems=systems))
    except (ShowError, RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    click.echo("\n".join(lines))
