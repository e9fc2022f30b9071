"""Answers with known verdicts, in a file that one's own may replace."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memdock_evaluator.answer.judge import ToJudge

LABEL_OF: Mapping[str, int] = MappingProxyType(
    {
        "long_winded": 2,
        "wrong_fact": 0,
        "partial_list": 1,
        "extra_detail": 3,
        "wrong_refusal": 0,
        "right_refusal": 2,
        "made_up": 0,
    }
)
"""What each kind of answer must get: a right answer in many words, a wrong fact of the same topic, a part of a list, a
right answer with a detail that nothing supports, a refusal where there is an answer, one where there is none, and a
fact where there is none."""


class ProbesError(ValueError):
    """A file of probes that cannot be used; the message names the topic and the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """An answer and the label that it must get."""

    topic: str
    kind: str
    item: ToJudge

    @property
    def label(self) -> int:
        """As its kind has it."""
        return LABEL_OF[self.kind]


_Text = Annotated[str, Field(min_length=1)]


class _Unanswerable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    question: _Text
    reference: _Text
    right_refusal: _Text
    made_up: _Text


class _Topic(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: _Text
    language: Annotated[str, Field(pattern="^[a-z]{2,3}$")]
    question: _Text
    reference: _Text
    long_winded: _Text
    wrong_fact: _Text
    partial_list: _Text
    extra_detail: _Text
    wrong_refusal: _Text
    unanswerable: _Unanswerable

    def probes(self) -> Iterator[Probe]:
        for kind in LABEL_OF:
            asked: _Topic | _Unanswerable = self.unanswerable if kind in _Unanswerable.model_fields else self
            item = ToJudge(
                question=asked.question,
                references=(asked.reference,),
                answer=getattr(asked, kind),
                language=self.language,
            )
            yield Probe(topic=self.id, kind=kind, item=item)


_TOPICS = TypeAdapter(Annotated[list[_Topic], Field(min_length=1)])


def read_probes(path: Path | None = None) -> tuple[Probe, ...]:
    """The probes of a file, topic by topic, of each kind one; without a path the bundled ones. Raises `ProbesError`."""
    file = path or resources.files("memdock_evaluator.judging").joinpath("probes.yaml")
    try:
        topics = _TOPICS.validate_python(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ProbesError(f"{file}: the probes cannot be read ({str(error).splitlines()[0]})") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        topic = f"topic {int(first['loc'][0]) + 1}" if first["loc"] else "the file"
        place = ", ".join((topic, *map(str, first["loc"][1:])))
        raise ProbesError(f"{file}: {place}: {first['msg']}") from error
    return tuple(probe for topic in topics for probe in topic.probes())
