"""`manifest.json`: what was run on what, by which versions, and how much of it there is.

`schema_version` is that of the whole folder, rows and parts too. A field that is added with a default leaves it as it
is: folders from before are read. It goes up where they cannot be read by defaults.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from memdock.types import ModelUsage, Residue
from memdock_evaluator.results.plan import Plan, SystemFacts
from memdock_evaluator.results.wrong_field import wrong_field

SCHEMA_VERSION = 1


class ManifestError(ValueError):
    """A manifest that cannot be read, or that belongs to another plan; the message says what to do."""


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


_MANIFEST = TypeAdapter(Manifest)
