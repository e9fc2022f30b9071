"""The judges of a file: who judges, in which languages, and how each is asked.

- name: pollux              # of each language, the first judge that serves it is primary
  languages: [ru]           # left out: all
  url: http://127.0.0.1:8000/v1
  model: ai-forever/pollux-judge-7b
  form: pollux              # left out: json
- name: r1
  url: https://models.example/v1
  model: deepseek-r1
  key_file: r1.key          # paths count from the file's folder
  prompt: mine/judge.{lang}.txt
  rubric: mine/rubric.{lang}.yaml
  temperature: 0.6          # left out: 0
  seed: 7                   # left out: that of the run
  tries: 3                  # where a reply holds no verdict
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings, NamedJudge
from memdock_evaluator.ranges import MAX_SEED
from memdock_evaluator.run.settings import SettingsError

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


class _Judge(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=rf"^{NAME.pattern}$")]
    languages: list[Annotated[str, Field(pattern="^[a-z]{2,3}$")]] = []
    url: Annotated[str, Field(pattern="^https?://")]
    model: Annotated[str, Field(min_length=1)]
    form: Literal["json", "pollux"] = "json"
    key_file: str = ""
    prompt: str = ""
    rubric: str = ""
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] = 0.0
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    tries: Annotated[int, Field(ge=1, le=20)] = 3


_JUDGES = TypeAdapter(Annotated[list[_Judge], Field(min_length=1)])


def read_judges(path: Path, *, timeout_s: float, tries: int, concurrency: int) -> Sequence[NamedJudge]:
    """The judges of a YAML file, each call with these limits; raises `SettingsError` naming the judge and the field."""
    try:
        found = _JUDGES.validate_python(yaml.safe_load(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise SettingsError(f"{path}: the judges cannot be read ({str(error).splitlines()[0]})") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise SettingsError(f"{path}: {_place(first['loc'])}: {first['msg']}") from error
    names = [judge.name for judge in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{path}: two judges are named {twice!r}")
    return [
        NamedJudge(
            name=judge.name,
            languages=tuple(judge.languages),
            settings=ModelSettings(
                endpoint=ModelEndpoint(
                    purpose="judge",
                    url=judge.url,
                    model=judge.model,
                    key=_key(path, judge),
                    temperature=judge.temperature,
                    timeout_s=timeout_s,
                    tries=tries,
                    concurrency=concurrency,
                ),
                prompt=_from(path, judge.prompt),
                rubric=_from(path, judge.rubric),
                form=judge.form,
                seed=judge.seed,
                verdict_tries=judge.tries,
            ),
        )
        for judge in found
    ]


def check_served(judges: Sequence[NamedJudge], languages: Sequence[str]) -> None:
    """Raises `SettingsError` for a language that no judge serves."""
    for language in languages:
        if not any(judge.serves(language) for judge in judges):
            raise SettingsError(f"--judges: no judge serves {language}: add it to the languages of one")


def _place(loc: tuple[int | str, ...]) -> str:
    """ "judge 2, temperature"; judges count from 1."""
    judge = f"judge {int(loc[0]) + 1}" if loc else "the file"
    return ", ".join((judge, *(str(step) for step in loc[1:])))


def _from(path: Path, written: str) -> str:
    return str(path.parent / written) if written else ""


def _key(path: Path, judge: _Judge) -> str:
    if not judge.key_file:
        return ""
    try:
        return (path.parent / judge.key_file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {judge.name}, key_file: the key cannot be read from {judge.key_file}") from error
