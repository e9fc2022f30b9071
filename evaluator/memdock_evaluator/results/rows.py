"""The rows of a run's two files: `outcomes.jsonl` (what happened) and `timings.jsonl` (how long it took).

An outcome row holds no time of the clock, no run id and no memory id, so that two runs of deterministic parts give the
same bytes. Numbers are rounded to six digits when a row is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from sys import intern
from typing import Annotated, TypeAlias, TypeVar

from pydantic import AfterValidator, TypeAdapter, ValidationError

from memdock_evaluator.results.lines import line_of
from memdock_evaluator.results.wrong_field import is_no_json, wrong_field

RowT = TypeVar("RowT", "Row", "Timing")

Text: TypeAlias = Annotated[str, AfterValidator(intern)]
"""A text that stands in many rows of a run, and once in memory when they are read."""


class Outcome(StrEnum):
    """What became of one question."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """A provider declined to answer; no answer of the system's is known, so it is not scored."""
    INFRASTRUCTURE_ERROR = "infrastructure_error"
    """Nobody's answer failed: a line, a quota, a deadline. Run again when the run goes on, never scored."""
    SYSTEM_ERROR = "system_error"
    """The memory system failed at its own work: wrong, with the reason."""


class Stage(StrEnum):
    """A step of the run that is timed."""

    ADD = "add"
    FLUSH = "flush"
    RETRIEVE = "retrieve"
    ANSWER = "answer"
    JUDGE = "judge"


class RowError(ValueError):
    """A line of a results file that is no row; the message names the field and what is wrong with it.

    `damaged`: it is not even JSON; else its fields are of another version.
    """

    def __init__(self, said: str, *, damaged: bool) -> None:
        super().__init__(said)
        self.damaged = damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """The turn that a memory was made from, by the data set's ids."""

    session_id: str
    turn_id: str


@lru_cache(maxsize=1 << 16)
def _once(sources: tuple[MemorySource, ...]) -> tuple[MemorySource, ...]:
    return sources


Sources: TypeAlias = Annotated[tuple[MemorySource, ...], AfterValidator(_once)]
"""The sources of a memory, which many rows name, kept once in the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedMemory:
    """A memory as retrieved. `rank` counts from 1; `time` is ISO 8601 with an offset, `None` where unknown."""

    rank: int
    kind: str
    text: Text
    score: float | None
    time: str | None
    sources: Sources = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was said where the answer lies: in a turn, or in a session of which no turn is named.

    `place` is the turn's id or the session's; `text` has a line "role: text" for each turn, up to a bound, after which
    the data has `cut` characters more. `time` is ISO 8601 with an offset, `None` where unknown.
    """

    place: str
    time: str | None
    text: Text
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherVerdict:
    """What a judge beside the primary one says; no `label`: its reply could not be read, `note` says why."""

    label: int | None
    note: Text = ""
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One system x language x dialogue x question x repeat.

    `repeat` counts all rows of a question: each ingest of its dialogue (`ingest`), each answer out of it, each verdict
    on that (`judging`), the last fastest. The tokens of an answer stand in the row of its first verdict. `correct` is
    `None` where the question is unscored (refused, an infrastructure error, or a verdict that could not be read: then
    `judge_note` says why). `verdict` and what goes with it are the primary judge's, `verdicts` by name those of the
    further judges, which decide nothing. A label of the 0-3 rubric is no scale: never average it. A retrieval figure is
    `None` where the evidence is unknown, the question an abstention, the memories name no sources, or the
    infrastructure failed first; it is 0 where the system itself failed. `memories` of the full-context baseline are
    left out. `evidence` has the words of the evidence. `sessions` is the number of the dialogue's last session, to say
    where in it the evidence lies; 0: the version that made the row did not keep it. `failed_turns` counts the turns of
    the dialogue that the system failed to store, and `failed_evidence` names those that the answer rests on: such a row
    is scored as it stands. `unstored_evidence` names those that the system took and of which it says that it made no
    memory, or that no memory which it lists was made from; `unstored_sessions` the evidence sessions of which all turns
    are so, where the evidence is not known by turn. `storage_listed`: the system lists its memories with their sources,
    so that what is in neither is stored for sure. `recall_text` stands in for the recalls where memories name no
    sources: a guess by their text (`text_sources.py`), no measure of retrieval. `memories_given` of the memories, the
    first ones, were given to the answer model: the others did not fit into the context budget. Retrieval figures are
    over all of them. Tokens are those of the calls that led to this row; `context_tokens` are always estimated as a
    quarter of the bytes of UTF-8, the others where an endpoint reports none (then `tokens_estimated`).
    """

    system: str
    language: str
    dialogue_id: str
    question_id: str
    repeat: int
    ingest: int = 0
    judging: int = 0
    axes: Mapping[str, str] = field(default_factory=dict)
    abstention: bool
    question: Text
    references: tuple[Text, ...]
    question_date: str | None
    evidence_sessions: tuple[str, ...]
    evidence_turns: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()
    sessions: int = 0
    outcome: Outcome
    reason: str = ""
    detail: str = ""
    failed_turns: int = 0
    failed_evidence: tuple[str, ...] = ()
    unstored_evidence: tuple[str, ...] = ()
    unstored_sessions: tuple[str, ...] = ()
    storage_listed: bool = False
    memories: tuple[RetrievedMemory, ...] = ()
    memories_given: int = 0
    answer: Text | None = None
    abstained: bool = False
    verdict: int | None = None
    correct: bool | None = None
    judge_note: Text = ""
    verdicts: Mapping[str, FurtherVerdict] = field(default_factory=dict)
    f1: float | None = None
    recall_sessions: float | None = None
    recall_turns: float | None = None
    mrr_sessions: float | None = None
    mrr_turns: float | None = None
    ndcg_sessions: float | None = None
    ndcg_turns: float | None = None
    recall_text: float | None = None
    context_tokens: int = 0
    answer_input_tokens: int = 0
    answer_output_tokens: int = 0
    judge_input_tokens: int = 0
    judge_output_tokens: int = 0
    tokens_estimated: bool = False

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What names the row, and its place in the file."""
        return self.system, self.language, self.dialogue_id, self.question_id, self.repeat

    def to_json(self) -> bytes:
        """The row as one line of JSON, keys sorted, without the line's end."""
        return line_of(self)

    @classmethod
    def from_json(cls, line: bytes | str) -> "Row":
        """The row of a line; raises `RowError`."""
        return _parse(_ROW, line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Wall time of one stage in milliseconds.

    `question_id` is `None` for `add` (one row a request) and `flush`. `inner` is empty for the time that the run
    waited, else the name of a stage inside the system ("embed") that its answer reported.
    """

    system: str
    language: str
    dialogue_id: str
    question_id: str | None
    repeat: int
    stage: Stage
    inner: str = ""
    ms: float

    @property
    def key(self) -> tuple[str, str, str, str, int, str, str]:
        """The row's place in the file; rows of one place keep the order in which they were measured."""
        question = self.question_id or ""
        return self.system, self.language, self.dialogue_id, question, self.repeat, self.stage, self.inner

    def to_json(self) -> bytes:
        """The row as one line of JSON, keys sorted, without the line's end."""
        return line_of(self)

    @classmethod
    def from_json(cls, line: bytes | str) -> "Timing":
        """The row of a line; raises `RowError`."""
        return _parse(_TIMING, line)


_ROW = TypeAdapter(Row)
_TIMING = TypeAdapter(Timing)


def _parse(adapter: TypeAdapter[RowT], line: bytes | str) -> RowT:
    try:
        return adapter.validate_json(line, extra="forbid")
    except ValidationError as error:
        raise RowError(wrong_field(error, whole="the line"), damaged=is_no_json(error)) from error
