"""`manifest.json`: what was run on what, by which versions, and how much of it there is.

`Manifest.plan` is what decides the figures: a run goes on only in a folder whose plan is the same.

`schema_version` is that of the whole folder, rows and parts too. A field that is added with a default leaves it as it
is: folders from before are read. It goes up where they cannot be read by defaults.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from memdock.types import Limits, Model, ModelUsage, Residue, Software
from memdock_evaluator.results.wrong_field import wrong_field

SCHEMA_VERSION = 1


class ManifestError(ValueError):
    """A manifest that cannot be read, or that belongs to another plan; the message says what to do."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFamily:
    """Systems whose mean is compared."""

    name: str
    systems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the report is to compare. It changes figures alone, so that a run goes on whatever it says.

    `families` in the order in which they are subtracted; empty: all memory systems, and full context. `atemporal`:
    systems without times, beside those that declare none. `case_studies`: systems that get Appendix G's; empty: the
    memory system of a run that has one.
    """

    families: tuple[NamedFamily, ...] = ()
    atemporal: tuple[str, ...] = ()
    case_studies: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every system that is named, each once."""
        members = (system for family in self.families for system in family.systems)
        return tuple(dict.fromkeys((*members, *self.atemporal, *self.case_studies)))

    def or_else(self, other: "Compared") -> "Compared":
        """What this says, and what `other` says of what this does not."""
        return Compared(
            families=self.families or other.families,
            atemporal=self.atemporal or other.atemporal,
            case_studies=self.case_studies or other.case_studies,
        )

    def among(self, systems: Iterable[SystemFacts]) -> "Compared":
        """The same, with all its contestants in place of a memory system's own name."""
        systems = list(systems)
        contestants = {
            each.system: [other.name for other in systems if other.system == each.system] for each in systems
        } | {each.name: [each.name] for each in systems}

        def spread(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(each for name in names for each in contestants.get(name, [name])))

        return Compared(
            families=tuple(replace(family, systems=spread(family.systems)) for family in self.families),
            atemporal=spread(self.atemporal),
            case_studies=spread(self.case_studies),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestCounts:
    """Turns of all dialogues of a system: as read from the data, as listed by the system, and by their state.

    `retried` turns had failed once and were sent again. `stale_reads`: answers of Retrieve that named pending turns
    although the barrier had said that there are none.
    """

    requests: int = 0
    turns_read: int = 0
    turns_listed: int = 0
    searchable: int = 0
    no_memory: int = 0
    failed: int = 0
    retried: int = 0
    stale_reads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Questions (times repeats) by what became of them; `scored` are those with a `correct`, system errors included."""

    expected: int = 0
    answered: int = 0
    refused: int = 0
    system_error: int = 0
    infrastructure_error: int = 0
    scored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemTotals:
    """What the run did with one contestant. `spaces_not_reset` are spaces that may still hold the data.

    A memory system that is asked for several k is filled once: what that took, and what all its searches did, stands
    under its own name, which has no coverage then, and is 0 of its contestants.
    """

    ingest: IngestCounts = field(default_factory=IngestCounts)
    failed_turns: Mapping[str, int] = field(default_factory=dict)
    """Turns that the system failed at, by reason."""
    usage: tuple[ModelUsage, ...] = ()
    """Inside the system, as its spaces reported it, by model and purpose."""
    coverage: Coverage = field(default_factory=Coverage)
    residue: tuple[Residue, ...] = ()
    """What the resets after the dialogues left, by component."""
    spaces_not_reset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Of a million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """Tokens of one model. `purpose`: "answer", "judge", or "memory: " and the system's own word, with ": from cache"
    behind it where a cache answered in the model's place. `estimated`: an endpoint did not count some of the tokens.
    `money`: `None` where the price table does not know the model.
    """

    system: str
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    money: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The bill of a run by list prices of a `date`. `money` adds up the lines that have any; `unpriced` models have
    none. `prices` are those that were used.
    """

    date: str
    currency: str
    prices: Mapping[str, Price]
    lines: tuple[CostLine, ...]
    money: float
    unpriced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """Questions with these `outcomes` that were asked again on demand. `finished`: `None` while any of them waits.

    Of the `asked` ones, `changed` have another outcome or verdict now, and `right` count as right and did not before.
    """

    outcomes: tuple[str, ...]
    begun: datetime
    finished: datetime | None = None
    asked: int
    changed: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """A container in which systems ran, as its engine told of it; `None`: no limit.

    `system`: the systems that it is part of, with ", " between. `digest`: of the image's contents; `published_digests`:
    those under which a registry has it. `peak_memory_bytes`: the most of the looks at it, one a second, without files
    that could be dropped. `cpu_s`, `restarts`: processor seconds and new starts during the run, whoever's work it was.
    """

    system: str
    container: str
    image: str
    digest: str
    published_digests: tuple[str, ...] = ()
    memory_limit_bytes: int | None = None
    cpu_limit: float | None = None
    pids_limit: int | None = None
    user: str = ""
    read_only: bool = False
    privileged: bool = False
    capabilities_dropped: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    peak_memory_bytes: int
    cpu_s: float
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What an engine told of the containers of a run's systems, by system and name."""

    engine: str
    containers: tuple[ContainerFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The whole file. `finished` is `None` while anything is left to do; `totals` are by contestant."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    started: datetime
    finished: datetime | None = None
    command: tuple[str, ...]
    """As typed, without secrets."""
    merged: tuple[str, ...] = ()
    """The ids of the runs that it was made of."""
    versions: Mapping[str, str]
    plan: Plan
    compared: Compared = field(default_factory=Compared)
    again: tuple[AskedAgain, ...] = ()
    """In their order."""
    totals: Mapping[str, SystemTotals] = field(default_factory=dict)
    cost: Cost | None = None
    isolation: Isolation | None = None
    """`None` where no engine was named."""

    def to_json(self) -> bytes:
        """The file's bytes, indented, keys sorted."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"

    @classmethod
    def from_json(cls, content: bytes, *, place: str) -> "Manifest":
        """Read the file's bytes; raises `ManifestError` naming `place`, the field, and what to do."""
        try:
            found = orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise ManifestError(
                f"{place} is damaged ({error}): put a copy of it back, or begin anew in another folder"
            ) from error
        _check_version(found, place)
        try:
            return _MANIFEST.validate_json(content, extra="forbid")
        except ValidationError as error:
            wrong = wrong_field(error, whole="the file")
            raise ManifestError(f"{place}: {wrong}; the run was made by {_maker(found)}") from error


def _check_version(found: Any, place: str) -> None:
    """Raises `ManifestError` for what no run of a version that this one reads has written."""
    if not isinstance(found, dict) or not isinstance(found.get("schema_version"), int):
        raise ManifestError(f"{place}: schema_version is missing, so this is no manifest of memdock-eval")
    if "suite" in found:
        raise ManifestError(f"{place} is of the suite {found['suite']} and no run: see summary.json beside it")
    if (written := found["schema_version"]) != SCHEMA_VERSION:
        age = "a newer" if written > SCHEMA_VERSION else "an older"
        raise ManifestError(
            f"{place} has schema_version {written}, and this version reads {SCHEMA_VERSION}: "
            f"it was made by {_maker(found, age)}; use that one for this folder"
        )


def _maker(found: dict[str, Any], age: str = "another") -> str:
    plan = found.get("plan")
    version = plan.get("evaluator_version") if isinstance(plan, dict) else None
    return f"{age} version" if version is None else f"{age} version (memdock-eval {version})"


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
_MANIFEST = TypeAdapter(Manifest)
