"""What marks hold: who asked for what, how far an attempt is, how it ended."""

import secrets
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

DocumentT = TypeVar("DocumentT")
Plan = Mapping[str, str | tuple[str, ...]]
"""The fields of a plan as they were written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A plan that was asked for. `request_id`: the client's own, "" without one."""

    run_id: str
    tenant: str
    key_id: str
    created: datetime
    plan: Plan
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt is to be made; `budget` in place of the plan's."""

    at: datetime
    token: str
    budget: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A sentence of a run; numbers count from 1 in an attempt."""

    number: int
    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """How far an attempt is. `count` grows with every beat. `released`: whoever likes may take the attempt."""

    count: int = 0
    done: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    said: tuple[Said, ...] = ()
    released: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an attempt ended: completed, incomplete, failed or cancelled. `cost` in `currency`, where it is known."""

    state: str
    at: datetime
    token: str
    exit_code: int | None = None
    sentences: tuple[str, ...] = ()
    cost: float | None = None
    currency: str = ""


def new_run_id() -> str:
    """Ids sort by the second in which they were made."""
    return f"{now():%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def now() -> datetime:
    """The time of day in whole seconds of UTC."""
    return datetime.now(UTC).replace(microsecond=0)


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, kind))


def read_document(kind: type[DocumentT], content: bytes) -> DocumentT:
    """A document as it was written."""
    document: DocumentT = _adapter(cast(Hashable, kind)).validate_json(content)
    return document


def document_bytes(document: object) -> bytes:
    """A document as JSON."""
    return _adapter(cast(Hashable, type(document))).dump_json(document)


def new_token() -> str:
    """What no other writer writes."""
    return secrets.token_hex(8)
