"""The paper's published rows beside a run's own, each with the fields in which the run differs."""

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from memdock_evaluator.dataset.published import DIALOGUES, QUESTIONS
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import ModelFacts
from memdock_evaluator.words.sentence import said

SOURCE = "RUMBA, arXiv:2607.21447, Table 5"
FULL_CONTEXT = "Full context"

_FILE = Path(__file__).parent.parent / "data" / "rumba_table5.csv"
_ANSWERER, _K = "gpt-4.1-mini", 10
_JUDGES = {"ru": "pollux", "en": "deepseek-r1"}
_FORMATS = ("rumba-rows", "rumba-dialogues")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row of Table 5 in one language, in per cent, errors as printed. `differs`: empty, it may be compared."""

    method: str
    family: str
    language: str
    accuracy: float
    accuracy_se: float
    f1: float
    f1_se: float
    differs: tuple[str, ...]


def published(manifest: Manifest) -> list[Published]:
    """The rows of the languages that the run has."""
    with _FILE.open(newline="", encoding="utf-8") as file:
        return [
            Published(
                method=row["method"],
                family=row["family"],
                language=row["language"],
                accuracy=float(row["accuracy"]),
                accuracy_se=float(row["accuracy_se"]),
                f1=float(row["f1"]),
                f1_se=float(row["f1_se"]),
                differs=tuple(_differs(manifest, row["language"], row["family"])),
            )
            for row in csv.DictReader(file)
            if row["language"] in manifest.plan.data.languages
        ]


def _differs(manifest: Manifest, language: str, family: str) -> Iterator[str]:
    """What decides the figures and is not as in the paper. The full context has other answer models and no k."""
    plan, counts = manifest.plan, manifest.plan.data.languages[language]
    if plan.data.format not in _FORMATS or (counts.dialogues, counts.questions) != (DIALOGUES, QUESTIONS):
        yield said("data")
    if family != FULL_CONTEXT:
        if not _is(plan.answerer, _ANSWERER):
            yield said("answerer")
        if _K not in plan.ks:
            yield said("k")
        if plan.reference_time:
            yield said("reference time")
        if plan.as_of:
            yield said("as of")
    if _is_bundled(plan.answerer, language):
        yield said("answer prompt")
    judge = _primary_judge(manifest, language)
    if not _is(judge, _JUDGES.get(language, "")):
        yield said("judge")
    if _is_bundled(judge, language):
        yield said("judge prompt")


def _primary_judge(manifest: Manifest, language: str) -> ModelFacts:
    of_several = (each.model for each in manifest.plan.judges.values() if language in each.primary_for)
    return next(of_several, manifest.plan.judge)


def _is(model: ModelFacts, name: str) -> bool:
    """Whether a model is one of a kin, whatever stands before or behind its name ("openai/gpt-4.1-mini")."""
    return model.kind == "openai" and bool(name) and name in model.model.casefold()


def _is_bundled(model: ModelFacts, language: str) -> bool:
    """The bundled prompts are words of ours; a file of the user's may be a copy of the paper's, which we have not."""
    prompt = model.prompts.get(language)
    return prompt is None or prompt.sha256 in _bundled_digests()


@cache
def _bundled_digests() -> frozenset[str]:
    files = resources.files("memdock_evaluator.prompts").iterdir()
    return frozenset(hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file())
