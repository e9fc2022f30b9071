"""A dialogue file of the project's own data set (`data/dialogues/d*.yaml`): both languages side by side."""

from datetime import date as Date  # noqa: N812 - a field has the name
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.dataset.errors import DatasetError
from memdock_evaluator.dataset.sessions import make_session, session_id, turn_id
from memdock_evaluator.dataset.times import read_iso
from memdock_evaluator.dataset.types import Dialogue, Question

UTC = ZoneInfo("UTC")

Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Clock = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class Written(BaseModel):
    """A part of a dialogue file; a key that is not named here is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Utterance(Written):
    """One turn, in both languages."""

    role: Literal["user", "assistant"]
    ru: Sentence
    en: Sentence


class Sitting(Written):
    """One session; `time` is wall clock."""

    session: int
    time: Clock
    turns: tuple[Utterance, ...]


class Place(Written):
    """A turn of evidence: its session's number from 1, its place in the session from 0."""

    session: int
    turn: int


class Asked(Written):
    """A question and its answer in one language."""

    question: Sentence
    answer: Sentence


class DateFact(Written):
    """A fact of the calendar that an answer rests on: a date's weekday, or the time from one date to another."""

    date: Date | None = None
    weekday: Weekday | None = None
    start: Date | None = Field(None, alias="from")
    end: Date | None = Field(None, alias="to")
    days: int | None = None
    months: int | None = None
    years: int | None = None


class WrittenQuestion(Written):
    """A question with its place in the taxonomy."""

    id: str
    category: str
    scope: Literal["single", "multi"]
    temporality: Literal["atemporal", "temporal"]
    temporal_expression: Literal["", "explicit", "implicit", "none"]
    subcategory: str = ""
    subsubcategory: str = ""
    question_date: Clock
    evidence: tuple[Place, ...] = Field(min_length=1)
    ru: Asked
    en: Asked
    checks: tuple[DateFact, ...] = ()


class WrittenDialogue(Written):
    """One file."""

    dialogue: int
    user_id: str
    about: str
    sessions: tuple[Sitting, ...]
    questions: tuple[WrittenQuestion, ...]

    def read_in(self, language: str) -> Dialogue:
        """The dialogue in one of its languages, as `open_dataset` reads it from either shape."""
        return Dialogue(
            dialogue_id=str(self.dialogue),
            language=language,
            user_id=self.user_id,
            sessions=tuple(
                make_session(
                    sitting.session,
                    read_iso(sitting.time, UTC),
                    ((turn.role, getattr(turn, language)) for turn in sitting.turns),
                )
                for sitting in self.sessions
            ),
            questions=tuple(self._question(question, language) for question in self.questions),
        )

    def _question(self, written: WrittenQuestion, language: str) -> Question:
        category = taxonomy.read_category(", ".join((written.category, written.scope, written.temporality)))
        asked: Asked = getattr(written, language)
        evidence = sorted({(place.session, place.turn) for place in written.evidence})
        return Question(
            question_id=f"{self.dialogue}|{written.id}",
            text=asked.question,
            references=(asked.answer,),
            date=read_iso(written.question_date, UTC),
            axes=taxonomy.axes(
                category,
                expression=written.temporal_expression,
                subcategory=written.subcategory,
                subsubcategory=written.subsubcategory,
            ),
            evidence_sessions=tuple(dict.fromkeys(session_id(session) for session, _ in evidence)),
            evidence_turns=tuple(turn_id(session, turn) for session, turn in evidence),
            abstention=category.abstention,
        )


def read_written(path: Path) -> WrittenDialogue:
    """Read a dialogue file, or raise a `DatasetError` that names its first mistake."""
    try:
        return WrittenDialogue.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise DatasetError(f"no YAML: {str(error).splitlines()[0]}", path=path) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DatasetError(first["msg"], path=path, field=".".join(map(str, first["loc"]))) from error
