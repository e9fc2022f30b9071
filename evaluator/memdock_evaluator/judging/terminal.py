"""An audit and an agreement as a terminal shows them."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from memdock_evaluator.answer.judge import LABELS
from memdock_evaluator.judging.agreement import Agreement
from memdock_evaluator.judging.audit import Audit, Figures
from memdock_evaluator.terminal import print_table
from memdock_evaluator.words import counted


def print_audit(audit: Audit, console: Console) -> None:
    """Each judge in turn, then how they agree."""
    for name, judge in audit.judges.items():
        model = f"{judge.model.model} at {judge.model.host}" if judge.model.host else judge.model.kind
        console.print(f"\n[bold]{name}[/bold] ({model})", highlight=False, soft_wrap=True)
        if judge.figures is None:
            console.print(
                f"could not be asked about every probe: {judge.failed}", markup=False, highlight=False, soft_wrap=True
            )
            continue
        _print_figures(judge.figures, console)
        for language, figures in judge.languages.items() if len(judge.languages) > 1 else ():
            console.print(f"{language}: {_sentence(figures)}", highlight=False, soft_wrap=True)
    print_agreement(audit.agreement, console)


def print_agreement(agreement: Agreement, console: Console) -> None:
    """One line for all, one for each two; nothing where there is only one judge."""
    if not agreement.pairs:
        return
    console.print(
        f"\nAgreement over labels (Krippendorff's nominal alpha): {_figure(agreement.alpha)}", highlight=False
    )
    for pair in agreement.pairs:
        console.print(
            f"{pair.first} and {pair.second}: kappa of right and wrong {_figure(pair.kappa)}, "
            f"the same label {pair.same} of {counted(pair.both, 'time')}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _print_figures(found: Figures, console: Console) -> None:
    labels = [*map(str, LABELS), "none"]
    print_table(_matrix("must get", labels, zip(map(str, LABELS), found.confusion, strict=True)), console)
    sides = _matrix("must be", ["wrong", "right", "none"], zip(["wrong", "right"], found.binary, strict=True))
    print_table(sides, console)
    kinds = Table("kind of answer", title_justify="left")
    for heading in ("probes", "another label", "wrong side"):
        kinds.add_column(heading, justify="right")
    for kind, errors in found.kinds.items():
        kinds.add_row(kind.replace("_", " "), *map(str, (errors.probes, errors.mislabelled, errors.misjudged)))
    print_table(kinds, console)
    console.print(_sentence(found), highlight=False, soft_wrap=True)


def _matrix(corner: str, given: Iterable[str], rows: Iterable[tuple[str, tuple[int, ...]]]) -> Table:
    table = Table(corner)
    for heading in given:
        table.add_column(f"gets {heading}", justify="right")
    for heading, counts in rows:
        table.add_row(heading, *(str(count) if count else "." for count in counts))
    return table


def _sentence(found: Figures) -> str:
    return (
        f"{found.same_side} of {counted(found.probes, 'probe')} on the right side ({found.same_label} with the very "
        f"label); too strict {found.too_strict}, too kind {found.too_kind}, unscored {found.unscored}"
    )


def _figure(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3f}"
