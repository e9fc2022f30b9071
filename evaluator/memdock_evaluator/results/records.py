"""What a stage of the run keeps of one dialogue or question, so that a run that was killed goes on behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pydantic import TypeAdapter

from memdock.types import ModelUsage, Residue
from memdock_evaluator.results.lines import line_of
from memdock_evaluator.results.manifest import IngestCounts
from memdock_evaluator.results.rows import FurtherVerdict, Outcome, RetrievedMemory, Row, Timing

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Why a stage has no result. With `Outcome.INFRASTRUCTURE_ERROR` the stage is run again."""

    outcome: Outcome
    reason: str
    detail: str


class Record(Protocol):
    """What every stage's record has."""

    @property
    def blame(self) -> Blame | None:
        """`None`: the stage has its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTurn:
    """A turn that the system did not take, after a second try."""

    turn_id: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """A dialogue in its space. `failed_turns`: what the system failed at and does not hold.

    `turns_without_memory`: ids of the turns that the system took and says that it made no memory of. `unsourced_turns`:
    ids of the turns that no memory names as its source, of all that the system lists; `None` where that proves nothing.
    """

    space_id: str
    counts: IngestCounts
    failed_turns: tuple[FailedTurn, ...] = ()
    turns_without_memory: tuple[str, ...] = ()
    unsourced_turns: tuple[str, ...] | None = None
    blame: Blame | None = None
    timings: tuple[Timing, ...] = ()

    def is_whole(self, allowed: float) -> bool:
        """Whether no more than this share of the dialogue's turns failed."""
        return len(self.failed_turns) <= allowed * self.counts.turns_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What names a question's record."""

    question_id: str
    repeat: int
    blame: Blame | None = None
    timings: tuple[Timing, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """A question and its repeat."""
        return self.question_id, self.repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval(Asking):
    """The memories for a question. `stale`: turns were pending although the barrier had let the question through."""

    memories: tuple[RetrievedMemory, ...] = ()
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Asking):
    """The answer to a question. `memories_given`: how many of the first memories the model was given."""

    answer: str | None = None
    abstained: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    context_tokens: int = 0
    memories_given: int = 0
    estimated: bool = False
    usage: tuple[ModelUsage, ...] = ()
    """All replies that came, those too that could not be used; what was paid for, by model and purpose."""
    paid: tuple[str, ...] = ()
    """With a cache: the keys there, in hexadecimal digits, of the replies that `usage` has paid for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Asking):
    """The verdict on an answer; no label: the judge's reply could not be read, and the question is unscored."""

    label: int | None = None
    correct: bool | None = None
    note: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    verdicts: Mapping[str, FurtherVerdict] = field(default_factory=dict)
    """Of the further judges, by name."""
    usage: tuple[ModelUsage, ...] = ()
    """All replies that came to any of the judges, as those of `Answered`."""
    paid: tuple[str, ...] = ()
    """As that of `Answered`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """A space that is no longer needed: what it cost, and what its reset left.

    `reset` false: it was kept, or, with a blame, is still to be reset. A Reset ends the count of what a space has cost,
    so that the cost is kept before it.
    """

    usage: tuple[ModelUsage, ...] = ()
    reset: bool = True
    residue: tuple[Residue, ...] = ()
    blame: Blame | None = None


def spent_on(closed: Sequence[Closed]) -> tuple[ModelUsage, ...]:
    """What a space has cost in all: each count that a Reset ended, and the last one, which goes on where none did."""
    return tuple(each for end in closed if end.reset or end is closed[-1] for each in end.usage)


RecordT = TypeVar("RecordT", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Kind(Generic[RecordT]):
    """A stage's name and how its records are read and written."""

    name: str
    adapter: TypeAdapter[RecordT] = field(repr=False)

    def to_line(self, record: RecordT) -> bytes:
        """The record as one line of JSON."""
        return line_of(record)

    def from_line(self, line: bytes) -> RecordT:
        """The record of a line; raises `pydantic.ValidationError`."""
        return self.adapter.validate_json(line, extra="forbid")


INGEST = Kind("ingest", TypeAdapter(Ingested))
RETRIEVE = Kind("retrieve", TypeAdapter(Retrieval))
ANSWER = Kind("answer", TypeAdapter(Answered))
JUDGE = Kind("judge", TypeAdapter(Judged))
CLOSE = Kind("close", TypeAdapter(Closed))
ROWS = Kind("rows", TypeAdapter(Row))
