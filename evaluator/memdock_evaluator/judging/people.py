"""What people's labels say of a run: how far they agree, and each system's accuracy as they would have judged it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson

from memdock_evaluator.answer.judge import is_right
from memdock_evaluator.judging.agreement import Agreement, agreement
from memdock_evaluator.judging.sheet import Sheet, SheetError
from memdock_evaluator.results.labels import SCHEMA_VERSION, Labelled
from memdock_evaluator.results.rows import Row
from memdock_evaluator.statistics.agreement import NO_LABEL, binary_kappa
from memdock_evaluator.statistics.labels import CorrectedAccuracy, corrected_accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplesView:
    """`labels.json`. `agreement` is between people, `judge_kappa` between the primary judge and what most of them say.

    `corrected` is by system and language, over the questions with an answer and a verdict; `None` where that group has
    no label.
    """

    run_id: str
    raters: tuple[str, ...]
    unlabelled: Mapping[str, int]
    """Items of a sheet that were left empty, by rater."""
    agreement: Agreement
    judge_kappa: float | None
    corrected: Mapping[str, Mapping[str, CorrectedAccuracy | None]]
    items: tuple[Labelled, ...]
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> bytes:
        """The file's bytes."""
        return orjson.dumps(_rounded(asdict(self)), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"


def peoples_view(run_id: str, of_run: Mapping[str, Row], sheets: Sequence[Sheet]) -> PeoplesView:
    """What the sheets say, of `of_run`, the items that can be labelled. Raises `SheetError` without a label."""
    names = [name for name in of_run if any(name in sheet.labels for sheet in sheets)]
    if not names:
        raise SheetError("no item has a label: fill in the column label, and import the sheet again")
    labelled = {name: _labelled(name, of_run[name], sheets) for name in names}
    by_people = {sheet.rater: [sheet.labels.get(name) for name in names] for sheet in sheets}
    people = np.array([int(each.right) for each in labelled.values()])
    judge = np.array([int(bool(is_right(each.judge))) for each in labelled.values()])
    return PeoplesView(
        run_id=run_id,
        raters=tuple(sheet.rater for sheet in sheets),
        unlabelled={sheet.rater: sheet.rows - len(sheet.labels) for sheet in sheets},
        agreement=agreement(by_people),
        judge_kappa=binary_kappa(judge, people),
        corrected=_corrected(of_run, labelled),
        items=tuple(sorted(labelled.values(), key=lambda each: each.item)),
    )


def _labelled(name: str, row: Row, sheets: Sequence[Sheet]) -> Labelled:
    labels = {sheet.rater: sheet.labels[name] for sheet in sheets if name in sheet.labels}
    votes = Counter(bool(is_right(label)) for label in labels.values())
    tied = votes[True] == votes[False]
    first = bool(is_right(next(iter(labels.values()))))
    assert row.verdict is not None
    return Labelled(
        item=name,
        system=row.system,
        language=row.language,
        dialogue_id=row.dialogue_id,
        question_id=row.question_id,
        repeat=row.repeat,
        labels=labels,
        right=first if tied else votes[True] > votes[False],
        tied=tied,
        judge=row.verdict,
    )


def _corrected(
    of_run: Mapping[str, Row], labelled: Mapping[str, Labelled]
) -> dict[str, dict[str, CorrectedAccuracy | None]]:
    groups: dict[str, dict[str, list[str]]] = {}
    for name, row in sorted(of_run.items(), key=lambda entry: entry[1].key):
        groups.setdefault(row.system, {}).setdefault(row.language, []).append(name)
    return {
        system: {language: _of_group(names, of_run, labelled) for language, names in languages.items()}
        for system, languages in groups.items()
    }


def _of_group(
    names: Sequence[str], of_run: Mapping[str, Row], labelled: Mapping[str, Labelled]
) -> CorrectedAccuracy | None:
    if not any(name in labelled for name in names):
        return None
    dialogues = {code: n for n, code in enumerate(dict.fromkeys(of_run[name].dialogue_id for name in names))}
    return corrected_accuracy(
        np.array([int(bool(of_run[name].correct)) for name in names]),
        np.array([int(labelled[name].right) if name in labelled else NO_LABEL for name in names]),
        np.array([dialogues[of_run[name].dialogue_id] for name in names]),
    )


def _rounded(value: Any) -> Any:
    """Figures to six digits, as rows have them."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
