"""The plan of a run: all that decides its figures, and in what two plans differ.

A run goes on only in a folder whose plan is the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from memdock.types import Limits, Model, Software


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCounts:
    """What one language of the data holds."""

    dialogues: int = 0
    sessions: int = 0
    turns: int = 0
    characters: int = 0
    questions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file that was read; `path` as it was given, "own:NAME" for the bundled data. `language`: declared for it."""

    path: str
    sha256: str
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A seeded stratified sample of whole dialogues, of questions, or of the questions of a sample of dialogues."""

    dialogues: int | None = None
    questions: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """The data of a run. `languages` counts what was taken of it, `oddities` is a count by kind."""

    files: tuple[DataFile, ...]
    format: str
    zone: str
    dialogues: tuple[str, ...]
    """The ids that were asked for; empty: all."""
    sample: Sample | None = None
    shard: str = ""
    """ "i/n"; "": all."""
    languages: Mapping[str, DataCounts]
    oddities: Mapping[str, int]


class Track(StrEnum):
    """Systems of two tracks are never ranked together."""

    CONTROLLED = "controlled"
    """The same answerer, k, ingest unit and context budget for all, and the same models inside the systems."""
    VENDOR = "vendor"
    """Each as its vendor would have it, by the settings that stand beside it."""


CONTROLLED_MODELS = ("embedding", "extraction")
"""Purposes for which the systems of the controlled track must have the same models, as far as Describe tells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorSettings:
    """The file with the settings that a system runs with: its path as given, its text and the text's SHA-256."""

    file: str
    sha256: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFacts:
    """A contestant: a memory system at one `k` and one context budget, with what Describe told of it.

    `name` is what rows call it: the system's own, or "rag-dense@5" in a run that asks the system for several k.
    `system`: the memory system's name. `context_tokens`: how much of its memories the answer model is given at most,
    by `tokens.estimated_tokens`; `None`: all. A baseline has its name alone.
    """

    name: str
    baseline: bool = False
    system: str = ""
    k: int = 0
    context_tokens: int | None = None
    ingest_unit: str = ""
    track: Track | None = None
    vendor_settings: VendorSettings | None = None
    adapter: Software | None = None
    framework: Software | None = None
    models: tuple[Model, ...] = ()
    features: Mapping[str, str] = field(default_factory=dict)
    limits: Limits | None = None
    config_digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFact:
    """A prompt or rubric file: its name, or its path where the user gave one, and its digest."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """An answerer or a judge. `kind`: "openai", or an offline one by its name, which has no host, seed or prompts."""

    kind: str
    model: str = ""
    host: str = ""
    path: str = ""
    """Of its address, behind the host: one host may serve models of the same name."""
    temperature: float | None = None
    seed: int | None = None
    form: str = ""
    """Of a judge's prompt: "json" or "pollux"."""
    prompts: Mapping[str, PromptFact] = field(default_factory=dict)
    """By language."""
    rubrics: Mapping[str, PromptFact] = field(default_factory=dict)
    """Of a judge, by language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """A judge of several, and for which languages its verdicts are the ones that count."""

    languages: tuple[str, ...]
    primary_for: tuple[str, ...]
    model: ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reused:
    """The run whose memories ("retrieve"), or memories and answers ("answer"), were taken over.

    `only_unscored`: its verdicts were, too, where they could be read.
    """

    run_id: str
    through: str
    only_unscored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDifference:
    """A field in which a run is not as its profile has it."""

    field: str
    paper: str
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that decides the figures of a run."""

    evaluator_version: str
    data: DataFacts
    systems: tuple[SystemFacts, ...]
    """By contestant: a memory system that is asked for several k stands there for each."""
    repeats: int
    """Answers of each question, each with a Retrieve of its own."""
    seed: int
    reference_time: bool
    as_of: bool
    answerer: ModelFacts
    judge: ModelFacts
    """The primary one; of several by language, all in one."""
    judges: Mapping[str, JudgeFacts] = field(default_factory=dict)
    """By name, where `--judges` gives them."""
    ingest_repeats: int = 1
    """How often a memory system stores each dialogue, in a space of its own each time."""
    judge_repeats: int = 1
    """Verdicts on each answer."""
    profile: str = ""
    """ "paper": `differs` lists the fields in which the run is not as the paper's."""
    differs: tuple[ProfileDifference, ...] = ()
    reused: Reused | None = None

    def rows_of_question(self, *, baseline: bool) -> int:
        """How many rows a question has in a system; nothing is stored for a baseline, so that it has one ingest."""
        return (1 if baseline else self.ingest_repeats) * self.repeats * self.judge_repeats

    @property
    def ks(self) -> tuple[int, ...]:
        """The numbers of memories that systems are asked for, ascending."""
        return tuple(sorted({each.k for each in self.systems if not each.baseline}))

    @property
    def ingest_units(self) -> tuple[str, ...]:
        """How systems are filled; one name in a run that is not of vendors' settings."""
        return tuple(sorted({each.ingest_unit for each in self.systems if not each.baseline}))

    @property
    def contestants(self) -> Mapping[str, tuple[SystemFacts, ...]]:
        """Memory system, or baseline by its own name -> its contestants."""
        found: dict[str, tuple[SystemFacts, ...]] = {}
        for each in self.systems:
            name = each.system or each.name
            found[name] = (*found.get(name, ()), each)
        return found

    @property
    def stores(self) -> Mapping[str, str]:
        """Contestant -> the memory system that is filled for it, or the baseline itself."""
        return {each.name: each.system or each.name for each in self.systems}


def differences(then: Plan, now: Plan, words: tuple[str, str] = ("then", "now")) -> list[str]:
    """The fields in which two plans differ, as "path: then ..., now ..." (by `words`) in the plan's order."""
    return [
        f"{path}: {words[0]} {one}, {words[1]} {other}"
        for path, one, other in _differences("", _plain(then), _plain(now))
    ]


def _plain(plan: Plan) -> Any:
    """As it stands in the file, systems and data files by name, so that a path names them."""
    plain = orjson.loads(orjson.dumps(asdict(plan)))
    plain["systems"] = {system["name"]: system for system in plain["systems"]}
    plain["data"]["files"] = {file["path"]: file["sha256"] for file in plain["data"]["files"]}
    return plain


def _differences(path: str, then: Any, now: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(then, dict) and isinstance(now, dict):
        for key in then | now:
            yield from _differences(f"{path}.{key}".lstrip("."), then.get(key, _ABSENT), now.get(key, _ABSENT))
    elif then != now:
        yield path, _shown(then), _shown(now)


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."


_ABSENT = object()
