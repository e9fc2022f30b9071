"""What is in a data file: sizes, slices, oddities and findings, gathered in one pass."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from memdock_evaluator.dataset import published, taxonomy
from memdock_evaluator.dataset.findings import SENTENCES, Finding, find
from memdock_evaluator.dataset.formats import open_dataset
from memdock_evaluator.dataset.types import Dialogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A quantity over dialogues."""

    least: int
    mean: float
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A size of this file beside the published one; `slice` is "" for a size of the whole."""

    axis: str
    slice: str
    here: int
    published: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that `check_dataset` found. Counts are of the whole file, spreads a dialogue.

    `slices` maps an axis to its slices' questions. `oddities` is what the reader mended or left out, `findings` what is
    worth knowing of what it read. `comparisons` is empty unless the file looks like the published RUMBA.
    """

    path: str
    languages: Mapping[str, int]
    dialogues: int
    sessions: int
    turns: int
    questions: int
    characters: int
    evidence_sessions: int
    sessions_each: Spread
    turns_each: Spread
    questions_each: Spread
    characters_each: Spread
    slices: Mapping[str, Mapping[str, int]]
    oddities: tuple[Finding, ...]
    findings: tuple[Finding, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def differences(self) -> tuple[Comparison, ...]:
        """The comparisons that do not agree."""
        return tuple(each for each in self.comparisons if each.here != each.published)


def check_dataset(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - as in open_dataset
    language: str | None = None,
    zone: str = "UTC",
) -> Report:
    """Read a data file from end to end and report on it; parameters and errors are those of `open_dataset`."""
    return report_on(open_dataset(path, format=format, language=language, zone=zone), str(path))


def report_on(dialogues: Iterable[Dialogue], path: str) -> Report:
    """Report on dialogues; `path` is only named."""
    languages: Counter[str] = Counter()
    sizes: dict[str, list[int]] = {"sessions": [], "turns": [], "questions": [], "characters": []}
    slices: defaultdict[str, Counter[str]] = defaultdict(Counter)
    oddities, findings = _Tally(), _Tally()
    evidence_sessions = 0
    for dialogue in dialogues:
        languages[dialogue.language] += 1
        sizes["sessions"].append(len(dialogue.sessions))
        sizes["turns"].append(sum(len(session.turns) for session in dialogue.sessions))
        sizes["questions"].append(len(dialogue.questions))
        sizes["characters"].append(dialogue.characters)
        evidence_sessions += sum(len(question.evidence_sessions) for question in dialogue.questions)
        for question in dialogue.questions:
            for axis, value in question.axes.items():
                slices[axis][value] += 1
        for oddity in dialogue.oddities:
            oddities.add(oddity.kind, oddity.where, oddity.detail)
        for kind, where in find(dialogue):
            findings.add(kind, where, SENTENCES[kind])
    totals = {name: sum(counts) for name, counts in sizes.items()}
    return Report(
        path=path,
        languages=dict(languages),
        dialogues=len(sizes["sessions"]),
        evidence_sessions=evidence_sessions,
        **totals,
        sessions_each=_spread(sizes["sessions"]),
        turns_each=_spread(sizes["turns"]),
        questions_each=_spread(sizes["questions"]),
        characters_each=_spread(sizes["characters"]),
        slices=_in_order(slices),
        oddities=oddities.findings(),
        findings=findings.findings(),
        comparisons=_compare(len(sizes["sessions"]), totals["questions"], evidence_sessions, slices),
    )


class _Tally:
    """Counts of what was found by kind, with the first place of each."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, tuple[str, str]] = {}

    def add(self, kind: str, where: str, sentence: str) -> None:
        self._counts[kind] += 1
        self._first.setdefault(kind, (where, sentence))

    def findings(self) -> tuple[Finding, ...]:
        return tuple(
            Finding(kind=kind, sentence=self._first[kind][1], count=count, first=self._first[kind][0])
            for kind, count in self._counts.most_common()
        )


def _spread(counts: list[int]) -> Spread:
    return Spread(least=min(counts), mean=round(sum(counts) / len(counts), 1), most=max(counts))


def _in_order(slices: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """RUMBA's axes and types in the paper's order, then others by name; slices of no fixed order by size."""
    named = (taxonomy.GROUPS, taxonomy.TYPES, taxonomy.SCOPES, taxonomy.TEMPORALITIES, taxonomy.EXPRESSIONS)
    rank = {value: place for place, value in enumerate(chain.from_iterable(named))}
    axes = [axis for axis in taxonomy.AXES if axis in slices]
    return {
        axis: dict(sorted(slices[axis].most_common(), key=lambda each: rank.get(each[0], len(rank))))
        for axis in [*axes, *sorted(set(slices) - set(axes))]
    }


def _compare(
    dialogues: int, questions: int, evidence_sessions: int, slices: Mapping[str, Mapping[str, int]]
) -> tuple[Comparison, ...]:
    """Against the published sizes, where the file has RUMBA's axes and more than half of the published questions."""
    if "semantic" not in slices or 2 * questions <= published.QUESTIONS:
        return ()
    whole = (
        ("dialogues", dialogues, published.DIALOGUES),
        ("questions", questions, published.QUESTIONS),
        ("evidence sessions", evidence_sessions, published.EVIDENCE_SESSIONS),
    )
    return tuple(Comparison(axis=name, slice="", here=here, published=there) for name, here, there in whole) + tuple(
        Comparison(axis=axis, slice=value, here=slices.get(axis, {}).get(value, 0), published=there)
        for axis, sizes in published.SLICES.items()
        for value, there in sizes.items()
    )
