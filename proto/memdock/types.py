"""The protocol's words as frozen dataclasses: what a client hands in and gets back, and what a memory system works on.

Times are aware `datetime`s with microseconds; `None` is "unknown", never "now". Fields that stand in the .proto mean
exactly what they mean there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class TurnState(StrEnum):
    """Where a turn stands in its life."""

    PENDING = "PENDING"
    SEARCHABLE = "SEARCHABLE"
    NO_MEMORY = "NO_MEMORY"
    FAILED = "FAILED"
    FORGOTTEN = "FORGOTTEN"
    UNKNOWN = "UNKNOWN"
    """Only ever read: a state of a newer server that this version has no word for."""


class Feature(StrEnum):
    """The closed list of what a system may declare."""

    FILTER_SESSIONS = "FILTER_SESSIONS"
    FILTER_TIME = "FILTER_TIME"
    FORGET_MEMORIES = "FORGET_MEMORIES"
    FORGET_TURNS = "FORGET_TURNS"
    FORGET_SESSIONS = "FORGET_SESSIONS"
    FORGET_DRY_RUN = "FORGET_DRY_RUN"
    LIST_MEMORIES = "LIST_MEMORIES"
    SOURCES = "SOURCES"
    SCORES = "SCORES"
    EVENT_TIME = "EVENT_TIME"
    TIME_ZONES = "TIME_ZONES"
    REFERENCE_TIME = "REFERENCE_TIME"
    VALIDITY = "VALIDITY"
    NO_MEMORY = "NO_MEMORY"
    BUFFERING = "BUFFERING"
    USAGE = "USAGE"


class Support(StrEnum):
    """How a feature is done: not at all, by the adapter around its framework, or by the framework itself."""

    UNSUPPORTED = "UNSUPPORTED"
    EMULATED = "EMULATED"
    NATIVE = "NATIVE"


class Component(StrEnum):
    """A place in which words of a turn can remain."""

    VECTOR = "VECTOR"
    GRAPH = "GRAPH"
    KEYWORD = "KEYWORD"
    RAW_TURNS = "RAW_TURNS"
    HISTORY = "HISTORY"
    CACHE = "CACHE"
    LOG = "LOG"
    UNKNOWN = "UNKNOWN"
    """Only ever read: a component of a newer server that this version has no word for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One utterance."""

    turn_id: str
    session_id: str
    role: str
    text: str
    name: str = ""
    time: datetime | None = None
    time_zone: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnError:
    """Why a turn failed; `message` holds no text of a turn."""

    reason: str
    message: str
    retryable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """What became of one turn of AddTurns."""

    turn_id: str
    state: TurnState
    duplicate: bool = False
    memory_ids: tuple[str, ...] = ()
    error: TurnError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn as the server's ledger holds it: never its text."""

    turn_id: str
    session_id: str
    state: TurnState
    memory_ids: tuple[str, ...] = ()
    error: TurnError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The turn that a memory was made from."""

    session_id: str
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a system gives back. `score`: higher is better, comparable inside one answer only; `None`: it has none."""

    memory_id: str
    text: str
    kind: str = ""
    score: float | None = None
    time: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    sources: tuple[Source, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """Calls of one model for one purpose (embedding, extraction, ...), with its tokens."""

    model: str
    purpose: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTiming:
    """Wall time of one stage of a call, in milliseconds."""

    stage: str
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What Retrieve asks. `session_ids` empty and `since`, `until` unset: no filter; `until` is exclusive."""

    text: str
    top_k: int = 10
    reference_time: datetime | None = None
    time_zone: str = ""
    session_ids: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to forget: exactly one of the three is filled."""

    memory_ids: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Residue:
    """What is left in one component after an erasure; `verified`: the component was searched afterwards."""

    component: Component
    items: int = 0
    verified: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What Forget took (or would take), and what is left.

    `changed`: turns that stay and whose memories are others now, since they had to be stored anew without what went, or
    lost theirs with it; each as it is now (SEARCHABLE, NO_MEMORY, or FAILED with its error). A Forget that is repeated
    tells them again. The server's ledger keeps it; it is not on the wire.
    """

    erased_memory_ids: tuple[str, ...] = ()
    erased_turn_ids: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()
    residual: tuple[Residue, ...] = ()
    changed: tuple[TurnResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """A piece of software and its version."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that a system depends on; `dimension` of an embedding, else 0."""

    purpose: str
    name: str
    dimension: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a server; the defaults are the protocol's."""

    max_turns_per_request: int = 256
    max_request_bytes: int = 4 * 1024 * 1024
    max_turn_bytes: int = 64 * 1024
    max_top_k: int = 100
    max_query_bytes: int = 8 * 1024
    max_page_size: int = 1000
    max_wait_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What Describe tells. Every feature of the closed list is a key of `features`."""

    system: str
    adapter: Software
    framework: Software
    protocol_versions: tuple[str, ...]
    features: Mapping[Feature, Support]
    limits: Limits
    models: tuple[Model, ...]
    config_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What AddTurns answers: one result a turn, in the order of the request."""

    results: tuple[TurnResult, ...]
    usage: tuple[ModelUsage, ...] = ()
    timing: tuple[StageTiming, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """What Flush answers. `failed`: the oldest of the space's failed turns, at most 256, of `failed_count` in all.

    `space_usage`: all that the space has cost since its last Reset.
    """

    done: bool
    pending: int
    failed_count: int
    failed: tuple[TurnResult, ...] = ()
    space_usage: tuple[ModelUsage, ...] = ()
    timing: tuple[StageTiming, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What Retrieve answers: memories best first; `pending` above 0 means that the answer may be stale."""

    memories: tuple[Memory, ...]
    pending: int
    failed_count: int
    usage: tuple[ModelUsage, ...] = ()
    timing: tuple[StageTiming, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What Forget answers: what went (or would go, in a dry run), what was not there, and what is left."""

    erased_memory_ids: tuple[str, ...] = ()
    erased_turn_ids: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()
    residual: tuple[Residue, ...] = ()
    usage: tuple[ModelUsage, ...] = ()
    timing: tuple[StageTiming, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetDone:
    """What Reset answers: how much went, and what is left."""

    erased_memories: int
    erased_turns: int
    residual: tuple[Residue, ...] = ()
    usage: tuple[ModelUsage, ...] = ()
    timing: tuple[StageTiming, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSummary:
    """One system behind a gateway; `ready`: its readiness check passes now."""

    system: str
    ready: bool
