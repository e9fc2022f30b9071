"""Who judges: what a judge sees, the verdict it gives, and how a reply in words becomes one."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memdock_evaluator.results.plan import ModelFacts

LABELS = (0, 1, 2, 3)
_RIGHT = (2, 3)
_POLLUX = re.compile(r"\[RESULT\]\s*(\d+)\s*\[END\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToJudge:
    """An answer and what it should have been. `spaces`: those that the answer derives from, which no model sees."""

    question: str
    references: Sequence[str]
    answer: str
    language: str
    spaces: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A label of the rubric, or `None` where no reply could be read as one: then the question is unscored.

    `note` is a word of the judge's on its label, or why there is none. `further`: by name, what the judges beside the
    primary one say.
    """

    label: int | None
    note: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    further: Mapping[str, "Verdict"] = field(default_factory=dict)

    @property
    def correct(self) -> bool | None:
        """As `is_right`."""
        return is_right(self.label)


def is_right(label: int | None) -> bool | None:
    """0 and 1 are incorrect, 2 and 3 correct, no label is neither."""
    return None if label is None else label in _RIGHT


class Judge(Protocol):
    """Anything that gives verdicts."""

    @property
    def facts(self) -> ModelFacts:
        """What the manifest says of it."""

    async def judge(self, item: ToJudge, *, repeat: int) -> Verdict:
        """Raises `Fault` or `RunStoppedError`."""

    async def close(self) -> None:
        """Closes connections."""


def read_json(reply: str) -> tuple[int | None, str]:
    """The label and the reason of a reply that holds a JSON object with `verdict`, whatever stands around it.

    No object, a label that the rubric does not know, or two objects that disagree: no label.
    """
    found = [(value["verdict"], value.get("reason", "")) for value in _objects(reply) if "verdict" in value]
    labels = {_label(verdict) for verdict, _ in found}
    if len(labels) != 1:
        return None, ""
    note = found[-1][1]
    return labels.pop(), note if isinstance(note, str) else ""


def read_pollux(reply: str) -> tuple[int | None, str]:
    """The label of `[RESULT] n [END]`; none where it is missing, unknown, or there twice and different."""
    labels = {_label(written) for written in _POLLUX.findall(reply)}
    return (labels.pop(), "") if len(labels) == 1 else (None, "")


def _label(written: object) -> int | None:
    if isinstance(written, str) and written.strip() in map(str, LABELS):
        return int(written)
    return written if type(written) is int and written in LABELS else None


def _objects(reply: str) -> Iterator[dict[str, Any]]:
    """Every outermost JSON object in the text."""
    decoder = json.JSONDecoder()
    at = reply.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(reply, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = reply.find("{", end)
