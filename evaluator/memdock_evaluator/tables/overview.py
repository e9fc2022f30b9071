"""Each system in one line: what it was right in, what it lost, leaked and kept, and what it cost by itself."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from memdock_evaluator.forgetting.summary import in_order
from memdock_evaluator.suites.attached import Attached
from memdock_evaluator.suites.shares import Share
from memdock_evaluator.summary.ranking import languages_of, systems_in_order
from memdock_evaluator.summary.shape import PurposeCost, Summary
from memdock_evaluator.tables.shape import Cell, Table, amount, percent

OVERVIEW = "systems"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """A contestant. Shares are between 0 and 1; `None`: not measured, or of a baseline.

    `accuracy`: by language. `coverage`: of all questions asked, in all languages. `retrieve_ms`: the highest 95th
    percentile of a language. `leaks`: (leaked, trials that show something), all moments together. `left`: (left, of):
    of the questions whose evidence could be retrieved and was forgotten, those that left any sign, all ways and
    languages together. `inside`: what the memory system's own model calls took.
    """

    system: str
    baseline: bool
    n_questions: int
    accuracy: Mapping[str, float | None]
    coverage: float
    retrieve_ms: float | None
    leaks: tuple[int, int] | None
    left: tuple[int, int] | None
    inside: PurposeCost | None

    @property
    def is_more(self) -> bool:
        """Whether there is anything that a summary of the answers does not tell."""
        priced = self.inside is not None and self.inside["money"] is not None
        return priced or self.leaks is not None or self.left is not None


def overview(summary: Summary, suites: Attached) -> list[Glance]:
    """The contestants of a run, in the order of its first language; the suites' figures are those of the system, the
    same at each k."""
    names = {
        name: None for language in languages_of(summary["systems"]) for name, _ in systems_in_order(summary, language)
    }
    leaks, left = dict(_leaks(suites)), dict(_left(suites))
    return [_glance(summary, name, leaks, left) for name in names]


def _glance(
    summary: Summary, name: str, leaks: Mapping[str, tuple[int, int]], left: Mapping[str, tuple[int, int]]
) -> Glance:
    found = summary["systems"][name]
    figures = found["languages"]
    asked = {language: sum(each["outcomes"].values()) for language, each in figures.items()}
    waited = [each["latency_ms"]["retrieve"]["p95"] for each in figures.values() if "retrieve" in each["latency_ms"]]
    bill = summary["cost"]["systems"].get(name) if summary["cost"] else None
    return Glance(
        system=name,
        baseline=found["baseline"],
        n_questions=sum(each["n_questions"] for each in figures.values()),
        accuracy={language: each["judge_accuracy"] for language, each in figures.items()},
        coverage=sum(figures[language]["coverage"] * n for language, n in asked.items()) / sum(asked.values()),
        retrieve_ms=max(waited, default=None),
        leaks=leaks.get(found["system"]),
        left=left.get(found["system"]),
        inside=bill["purposes"].get("memory") if bill else None,
    )


def _leaks(suites: Attached) -> Iterator[tuple[str, tuple[int, int]]]:
    for result in suites.leaks:
        for name, moments in result.summary["systems"].items():
            if name in result.differs:
                yield name, _sum(each["leaks"] for each in moments.values())


def _left(suites: Attached) -> Iterator[tuple[str, tuple[int, int]]]:
    for result in suites.forgetting:
        for name in result.differs:
            shares = [each["residue"] for system, _, _, each in in_order(result.summary) if system == name]
            if shares:
                yield name, _sum(shares)


def _sum(shares: Iterable[Share]) -> tuple[int, int]:
    found = [(share["events"], share["of"]) for share in shares]
    return sum(events for events, _ in found), sum(of for _, of in found)


def overview_table(summary: Summary, suites: Attached) -> Table:
    """A row a contestant; no times, so that the same outcomes are the same bytes."""
    languages = languages_of(summary["systems"])
    currency = f", {summary['cost']['currency']}" if summary["cost"] else ""
    return Table(
        name=OVERVIEW,
        title="Each system in one line",
        columns=(
            *("system", "questions", "coverage", *(f"accuracy {language}" for language in languages)),
            *("leaks", "of trials", "left after Forget", "of forgotten"),
            *("tokens inside, in", "tokens inside, out", f"money inside{currency}"),
        ),
        rows=tuple(
            (
                *(each.system, each.n_questions, percent(each.coverage)),
                *(percent(each.accuracy.get(language)) for language in languages),
                *(each.leaks or (None, None)),
                *(*(each.left or (None, None)), *_inside(each.inside)),
            )
            for each in overview(summary, suites)
        ),
        notes=(
            "Inside: what the memory system's own model calls took, storing the dialogues included. Leaks are of "
            "trials; left after Forget: questions whose forgotten evidence left any sign. Without the suites nothing "
            "is said.",
        ),
    )


def _inside(found: PurposeCost | None) -> tuple[Cell, Cell, Cell]:
    if found is None:
        return None, None, None
    return found["input_tokens"], found["output_tokens"], amount(found["money"])
