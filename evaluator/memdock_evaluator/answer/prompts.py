"""Prompt files: found by name and language or by the user's path, checked as they are opened, hashed, filled in."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from memdock_evaluator.results.plan import PromptFact

FALLBACK_LANGUAGE = "en"
"""Used for a language that has no file of its own."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class PromptError(ValueError):
    """A prompt file that cannot be used; the message names the file and what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A file's text, its name (a path where the user gave one) and the SHA-256 of its bytes in hexadecimal."""

    name: str
    text: str
    sha256: str


def facts_of(files: Mapping[str, TextFile]) -> Mapping[str, PromptFact]:
    """What the manifest says of the files of each language."""
    return {language: PromptFact(file=file.name, sha256=file.sha256) for language, file in files.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A text with `{placeholders}`. Every name of `fields` stands in it, and no other."""

    file: TextFile
    fields: frozenset[str]

    def __post_init__(self) -> None:
        found = set(_PLACEHOLDER.findall(self.file.text))
        if missing := sorted(self.fields - found):
            raise PromptError(f"{self.file.name}: the prompt lacks {{{missing[0]}}}")
        if unknown := sorted(found - self.fields):
            known = ", ".join(f"{{{name}}}" for name in sorted(self.fields))
            raise PromptError(f"{self.file.name}: {{{unknown[0]}}} is no placeholder of this prompt; it has {known}")

    def fill(self, **values: str) -> str:
        """The text with each placeholder replaced once: braces inside a value stay as they are."""
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.file.text).rstrip("\n")


POLLUX_SECTIONS = (
    ("### Задание для оценки:", "question"),
    ("### Эталонный ответ:", "reference"),
    ("### Ответ для оценки:", "answer"),
    ("### Критерий оценки:", "criterion"),
    ("### Шкала оценивания по критерию:", "scale"),
)
"""The one form that POLLUX was trained on: each heading with what stands below it, in this order."""


def check_pollux(file: TextFile) -> None:
    """Raises `PromptError` where a section of POLLUX's form is missing, in another place, or holds something else."""
    headings = [line.strip() for line in file.text.splitlines() if line.startswith("###")]
    wanted = [heading for heading, _ in POLLUX_SECTIONS]
    if headings != wanted:
        at = next((n for n, heading in enumerate(wanted) if headings[n : n + 1] != [heading]), len(wanted))
        found = f"{headings[at]!r}" if at < len(headings) else "nothing"
        place = f"{wanted[at]!r} is wanted" if at < len(wanted) else "the form ends"
        raise PromptError(f"{file.name}: POLLUX's form: where {place}, there is {found}")
    bodies = re.split(r"^###.*$", file.text, flags=re.MULTILINE)[1:]
    for (heading, name), body in zip(POLLUX_SECTIONS, bodies, strict=True):
        if _PLACEHOLDER.findall(body) != [name]:
            raise PromptError(f"{file.name}: POLLUX's form: below {heading!r} belongs {{{name}}}, and no other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """What a judge goes by: the criterion, and what each label means."""

    file: TextFile
    criterion: str
    scale: Mapping[int, str]

    @property
    def scale_lines(self) -> str:
        """The labels, one a line: "0: ..."."""
        return "\n".join(f"{label}: {meaning}" for label, meaning in self.scale.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalWords:
    """How a language says that there is no answer: the fixed sentence, and patterns for other wordings."""

    sentence: str
    patterns: tuple[re.Pattern[str], ...] = field(repr=False)


def bundled(stem: str, language: str, suffix: str) -> TextFile:
    """The bundled file of a language, or of `FALLBACK_LANGUAGE` where that language has none."""
    folder = resources.files("memdock_evaluator.prompts")
    name = f"{stem}.{language}.{suffix}"
    if not folder.joinpath(name).is_file():
        name = f"{stem}.{FALLBACK_LANGUAGE}.{suffix}"
    return _text_file(name, folder.joinpath(name).read_bytes())


def bundled_for_all(name: str) -> TextFile:
    """The bundled file that serves every language."""
    return _text_file(name, resources.files("memdock_evaluator.prompts").joinpath(name).read_bytes())


def opened(path: Path) -> TextFile:
    """A file of the user's; raises `PromptError`."""
    try:
        return _text_file(str(path), path.read_bytes())
    except OSError as error:
        raise PromptError(f"{path}: cannot be read ({error.strerror})") from error


def rubric(file: TextFile) -> Rubric:
    """Read a rubric: `criterion`, and `scale` with a meaning for each label from 0 to 3."""
    content = _mapping(file)
    scale = content.get("scale")
    if not isinstance(content.get("criterion"), str):
        raise PromptError(f"{file.name}: criterion: a text is missing")
    if not isinstance(scale, dict) or set(scale) != {0, 1, 2, 3}:
        raise PromptError(f"{file.name}: scale: give a meaning for each of the labels 0, 1, 2 and 3")
    return Rubric(file=file, criterion=content["criterion"], scale={label: str(scale[label]) for label in range(4)})


def refusal_words(language: str) -> RefusalWords:
    """The bundled words of a language (of `FALLBACK_LANGUAGE` where it has none)."""
    content = _mapping(bundled("refusal", language, "yaml"))
    patterns = tuple(re.compile(pattern, re.IGNORECASE) for pattern in content["patterns"])
    return RefusalWords(sentence=content["sentence"], patterns=patterns)


def _text_file(name: str, content: bytes) -> TextFile:
    try:
        return TextFile(name=name, text=content.decode(), sha256=hashlib.sha256(content).hexdigest())
    except UnicodeDecodeError as error:
        raise PromptError(f"{name}: is not UTF-8 text") from error


def _mapping(file: TextFile) -> dict[Any, Any]:
    try:
        content = yaml.safe_load(file.text)
    except (yaml.YAMLError, RecursionError) as error:
        raise PromptError(f"{file.name}: is not YAML ({str(error).splitlines()[0]})") from error
    if not isinstance(content, dict):
        raise PromptError(f"{file.name}: must be a mapping")
    return content
