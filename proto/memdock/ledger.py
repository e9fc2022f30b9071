"""The turn ledger: what a server must remember to keep the protocol's promises through a kill.

A ledger holds, for each turn that was ever accepted, its place in the order, its state and a keyed digest of its
content; the content itself only while the turn is PENDING. Beside it: what each space has cost, and the erasures that
were begun, until they are finished.

`seq` is the place in the order of acceptance: a positive integer that grows over the whole ledger and is never given
twice, also not after Reset. So a batch that ends after a Reset settles nothing: its seqs are gone.

Every method is one transaction: it holds after a kill, or nothing of it does. Methods may be called at once. A method
that is cancelled may still have happened. A store that is away raises `UnavailableError` (STORE_UNREACHABLE).
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from memdock.system import Outcome
from memdock.types import ModelUsage, Residue, Selection, Turn, TurnRecord, TurnResult

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What became of the turns of one AddTurns.

    `results`: one a turn, in order. `conflicts`: indexes of turns whose id stands for other content; when there is one,
    nothing was admitted and `results` is empty.
    """

    results: tuple[TurnResult, ...] = ()
    conflicts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTurn:
    """A turn that waits for the system.

    `started`: an attempt was under way when the process or its store went away. `retried`: an attempt ended in FAILED
    and the client sent the turn again. After either the system may hold parts of the turn.
    """

    seq: int
    turn: Turn
    started: bool = False
    retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The outcome of the turn at `seq`."""

    seq: int
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many turns of a space are PENDING, and how many FAILED."""

    pending: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """A turn with its place in the order."""

    seq: int
    record: TurnRecord


class ErasureKind(StrEnum):
    """Forget takes what is selected, Reset the whole space."""

    FORGET = "FORGET"
    RESET = "RESET"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a selection means to the ledger now.

    `turn_ids`: the turns selected by id or by session that the ledger knows, FORGOTTEN ones too (an earlier attempt
    may have ended half way), in acceptance order. `held_turn_ids`: those of them that are not FORGOTTEN. `not_found`:
    selected turn or session ids of which nothing is held, in the order of the selection. All are empty for
    `memory_ids`: only the system knows those.
    """

    turn_ids: tuple[str, ...] = ()
    held_turn_ids: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """An erasure that was begun and must be finished, whatever happens to the process or the caller.

    `resolution`: as it was at the start (Forget). `last_seq`: the last place taken in the order at the start; a Reset
    takes all up to it. `erased_turns` (not FORGOTTEN before) and `erased_memories` (different ids known to have stood
    on them): how much the ledger's own part of a Reset took. `foreseen_turns`, `foreseen_memories`: what the system was
    about to take (`foresee`).
    """

    erasure_id: int
    space: str
    kind: ErasureKind
    selection: Selection
    resolution: Resolution
    last_seq: int
    erased_turns: int = 0
    erased_memories: int = 0
    foreseen_turns: tuple[str, ...] = ()
    foreseen_memories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What `begin_erasure` found or did.

    `intent`: the erasure to carry out, or already under way; `None` once it is finished. `answer`: what the finished
    one answered, as given to `finish_erasure`; `None` while it is open. `mismatch`: the request id was used for another
    request; then nothing was begun and both are `None`.
    """

    intent: Intent | None = None
    answer: bytes | None = None
    mismatch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Memories that outcomes of turns have named, and these turns, in acceptance order."""

    memory_ids: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What `erase` did: the turns that it made FORGOTTEN, in acceptance order, and a RAW_TURNS residue.

    The residue's `items` is the number of contents of the erasure's turns that a search afterwards still found.
    """

    turn_ids: tuple[str, ...] = ()
    residue: Residue


class Ledger(Protocol):
    """A durable turn ledger. One process owns it at a time."""

    @property
    def shares_transaction(self) -> bool:
        """`settle` runs `Batch.write` in its own transaction, and the system writes turns nowhere else.

        Then a turn that is still PENDING has left nothing in the system: `start` is never called and nothing need be
        forgotten before it is worked on again.
        """

    async def open(self) -> None:
        """Takes the ledger over, before the system starts; raises `UnavailableError` when another process owns it."""

    async def close(self) -> None:
        """Gives the ledger up. Harmless when it is not open."""

    async def check_ready(self) -> None:
        """Returns when the store answers; raises otherwise."""

    # Turns

    async def admit(self, space: str, turns: Sequence[Turn]) -> Admission:
        """Accepts all turns or none, in order; equal requests at once make one turn.

        Unknown id: PENDING at the next place. Same content (`content_digest`): `duplicate` with its present state,
        memory ids and error; a FAILED one becomes PENDING at a new place, `retried`, without an error. Other content: a
        conflict.
        """

    async def pending(self, space: str, *, upto: int | None = None, limit: int) -> Sequence[PendingTurn]:
        """The oldest PENDING turns (at a place not after `upto`), at most `limit`, in order."""

    async def last_pending(self, space: str) -> int:
        """The place of the newest PENDING turn; 0: none."""

    async def start(self, space: str, seqs: Sequence[int]) -> None:
        """Marks PENDING turns as started, before the system gets them."""

    async def settle(
        self,
        space: str,
        settled: Sequence[Settled],
        *,
        usage: Sequence[ModelUsage] = (),
        write: Callable[[Any], Awaitable[None]] | None = None,
    ) -> None:
        """Records outcomes and what they cost, and drops the content of the settled turns.

        Touches only turns that are still there and PENDING; the rest of a batch stays PENDING and is no longer
        `started`. `write` is awaited first, in the same transaction and with its connection; what it raises is raised
        here, and nothing is recorded. A `write` given to a ledger that does not share its transaction is a TypeError.
        While a Reset of the space is open, usage is dropped: it belongs to the space that is going.
        """

    async def counts(self, space: str, *, upto: int | None = None) -> Counts:
        """PENDING turns (at a place not after `upto`) and all FAILED turns of a space. On the path of each Retrieve."""

    async def failed(self, space: str, *, limit: int) -> Sequence[LedgerRow]:
        """FAILED turns, oldest first."""

    async def turns(self, space: str, *, after: int, limit: int) -> Sequence[LedgerRow]:
        """Turns in acceptance order at places after `after` (0: from the first)."""

    async def find(self, space: str, turn_ids: Sequence[str]) -> Mapping[str, TurnRecord]:
        """Those of the turns that the space knows, by id. On the path of each Retrieve."""

    async def busy_spaces(self) -> Sequence[str]:
        """Spaces with PENDING turns or open erasures, each once: what to go on with after a start."""

    # Erasure

    async def resolve(self, space: str, selection: Selection) -> Resolution:
        """What a Forget would take; changes nothing."""

    async def begin_erasure(
        self, space: str, kind: ErasureKind, selection: Selection, *, request_id: str, fingerprint: bytes
    ) -> Begun:
        """Writes down the intent and does the ledger's own part of it at once.

        Forget: the held turns of `resolve` become FORGOTTEN and lose their content, error and memory ids. Reset: all
        turns, tombstones, usage, open Forgets and kept Forget answers of the space are gone; answers of Resets that
        have a request id are kept for good (a row of ids and counts each), so that a late repeat does not take newer
        turns. `request_id` not empty and known in the space: nothing is begun; the open intent, the kept answer, or
        (other `kind` or `fingerprint`) a mismatch comes back.
        """

    async def open_erasures(self, space: str) -> Sequence[Intent]:
        """Erasures that were begun and not finished, oldest first."""

    async def recorded(self, space: str, memory_ids: Sequence[str]) -> Recorded:
        """Which of these memories turns of the space are recorded with, and these turns."""

    async def foresee(self, intent: Intent, *, turn_ids: Sequence[str], memory_ids: Sequence[str]) -> None:
        """Notes in an open Forget what the system is about to take.

        After an attempt that ended before this ledger heard what was taken, the system no longer knows it.
        """

    async def erase(
        self,
        intent: Intent,
        *,
        turn_ids: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        changed: Sequence[TurnResult] = (),
    ) -> Taken:
        """Completes the ledger's part with what the system took, and looks at what is left.

        Those of `turn_ids` that the space holds at places not after `intent.last_seq` become FORGOTTEN (what was sent
        since is newer than the erasure), `memory_ids` vanish from all turns of the space, `changed` turns get the
        state, memory ids and error that are told, but for those that are PENDING, FORGOTTEN or newer. The content of
        all that this erasure took is scrubbed from the store's files where it can be.
        """

    async def finish_erasure(self, intent: Intent, *, answer: bytes, usage: Sequence[ModelUsage] = ()) -> None:
        """Closes the intent; keeps `answer` (no text of a turn in it) where there is a request id.

        Usage of a Forget is added to the space's. Harmless when the intent is gone.
        """

    async def abandon_erasure(self, intent: Intent) -> None:
        """Drops a Forget that the system refused; its turns stay FORGOTTEN, its request id is free again."""

    # Cost

    async def spend(self, space: str, usage: Sequence[ModelUsage]) -> None:
        """Adds to what the space has cost; dropped while a Reset of the space is open."""

    async def spent(self, space: str) -> Sequence[ModelUsage]:
        """All that the space has cost since its last Reset, one entry for each model and purpose, in a fixed order."""


def pack_content(turn: Turn) -> bytes:
    """The content of a turn (all but its id) as canonical UTF-8 JSON: equal content, equal bytes."""
    time_us = None if turn.time is None else (turn.time - _EPOCH) // _MICROSECOND
    fields = [turn.session_id, turn.role, turn.name, turn.text, time_us, turn.time_zone, sorted(turn.metadata.items())]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def unpack_content(turn_id: str, content: bytes) -> Turn:
    """The turn that `pack_content` packed; its time comes back in UTC."""
    session_id, role, name, text, time_us, time_zone, metadata = json.loads(content)
    return Turn(
        turn_id=turn_id,
        session_id=session_id,
        role=role,
        name=name,
        text=text,
        time=None if time_us is None else _EPOCH + time_us * _MICROSECOND,
        time_zone=time_zone,
        metadata=dict(metadata),
    )


def content_digest(key: bytes, content: bytes) -> bytes:
    """32 bytes that tell equal packed content; nobody without `key` (16-64 bytes, the ledger's) can guess content."""
    return hashlib.blake2b(content, digest_size=32, key=key).digest()
