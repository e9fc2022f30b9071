"""Memory systems small enough to reason about: one in memory with every feature, one durable and slow.

Both keep no key of their own: a turn that is added twice is there twice, so that a fault of the server shows.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memdock import usage
from memdock.system import Batch, Outcome, SystemInfo
from memdock.types import (
    Component,
    Erasure,
    Feature,
    Limits,
    Memory,
    Model,
    Query,
    Residue,
    Selection,
    Software,
    Source,
    Support,
    Turn,
    TurnError,
    TurnResult,
    TurnState,
)

ALL_FEATURES: Mapping[Feature, Support] = dict.fromkeys(Feature, Support.EMULATED)

_BROKEN = TurnError(reason="PROVIDER_PROTOCOL_ERROR", message="the toy was told to fail", retryable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A memory with the turns that it stands on."""

    memory_id: str
    turns: tuple[Turn, ...]

    @property
    def text(self) -> str:
        return " ".join(turn.text for turn in self.turns)

    def memory(self, score: float | None = None) -> Memory:
        return Memory(
            memory_id=self.memory_id,
            text=self.text,
            kind="turn",
            score=score,
            time=self.turns[0].time,
            sources=tuple(Source(session_id=turn.session_id, turn_id=turn.turn_id) for turn in self.turns),
        )


class ToySystem:
    """Keeps chunks of `chunk` turns in memory; finds them by shared words.

    Knobs, to be turned while it runs: `gate` (cleared: `add` waits), `failing` and `empty` (turn ids), `add_fault`,
    `erase_fault` and `read_fault` (raised while set). `log` has each call with its space and turn ids; an overlap of
    two writing calls in one space is an AssertionError.
    """

    def __init__(
        self,
        *,
        name: str = "toy",
        features: Mapping[Feature, Support] = ALL_FEATURES,
        chunk: int = 1,
        delay_s: float = 0.0,
        limits: Limits | None = None,
    ) -> None:
        self._info = SystemInfo(
            name=name,
            adapter=Software(name="toy", version="1"),
            framework=Software(name="none", version="0"),
            features=features,
            models=(Model(purpose="extraction", name="toy-model"),),
            limits=limits or Limits(),
            config={"chunk": chunk},
        )
        self._chunk = chunk
        self._delay_s = delay_s
        self._count = 0
        self._writing: set[str] = set()
        self.kept: dict[str, list[_Kept]] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.failing: set[str] = set()
        self.empty: set[str] = set()
        self.add_fault: BaseException | None = None
        self.erase_fault: BaseException | None = None
        self.read_fault: BaseException | None = None
        self.read_delay_s = 0.0
        self.reads_cancelled = 0
        self.most_spaces_at_once = 0
        self.alter: Callable[[list[Memory]], list[Memory]] = lambda memories: memories
        self.log: list[tuple[str, str, tuple[str, ...]]] = []

    @property
    def info(self) -> SystemInfo:
        return self._info

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        self._enter(space, "final add" if final else "add", [turn.turn_id for turn in turns])
        try:
            self.entered.set()
            await self.gate.wait()
            await asyncio.sleep(self._delay_s)
            if self.add_fault is not None:
                raise self.add_fault
            return Batch(outcomes=self._add_chunks(space, list(turns), final=final))
        finally:
            self._writing.discard(space)

    def _add_chunks(self, space: str, turns: list[Turn], *, final: bool) -> list[Outcome]:
        outcomes: list[Outcome] = []
        while len(turns) >= self._chunk or (final and turns):
            group, turns = turns[: self._chunk], turns[self._chunk :]
            good = [turn for turn in group if turn.turn_id not in self.failing | self.empty]
            kept = self._keep(space, good)
            for turn in group:
                usage.count(model="toy-model", purpose="extraction", input_tokens=len(turn.text))
                outcomes.append(self._outcome(turn, kept))
        return outcomes

    def _outcome(self, turn: Turn, kept: str) -> Outcome:
        if turn.turn_id in self.failing:
            return Outcome(state=TurnState.FAILED, error=_BROKEN)
        if turn.turn_id in self.empty:
            return Outcome(state=TurnState.NO_MEMORY)
        return Outcome(state=TurnState.SEARCHABLE, memory_ids=(kept,))

    def _keep(self, space: str, turns: Sequence[Turn]) -> str:
        if not turns:
            return ""
        self._count += 1
        kept = _Kept(memory_id=f"m{self._count}", turns=tuple(turns))
        self.kept.setdefault(space, []).append(kept)
        return kept.memory_id

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        self.log.append(("retrieve", space, ()))
        usage.count(model="toy-model", purpose="search", input_tokens=len(query.text))
        try:
            await asyncio.sleep(self.read_delay_s)
        except asyncio.CancelledError:
            self.reads_cancelled += 1
            raise
        if self.read_fault is not None:
            raise self.read_fault
        words = set(query.text.lower().split())
        found = [
            kept.memory(score=float(len(words & set(kept.text.lower().split()))))
            for kept in self.kept.get(space, ())
            if _fits(kept, query)
        ]
        ranked = sorted((memory for memory in found if memory.score), key=lambda memory: -(memory.score or 0))
        return self.alter(ranked[: query.top_k])

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        self._enter(space, "forget (dry run)" if dry_run else "forget", [*selection.turn_ids, *selection.memory_ids])
        try:
            await asyncio.sleep(self._delay_s)
            if self.erase_fault is not None:
                raise self.erase_fault
            return self._forget(space, selection, dry_run=dry_run)
        finally:
            self._writing.discard(space)

    def _forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        held = self.kept.get(space, [])
        gone = set(selection.turn_ids)
        hit = [
            kept
            for kept in held
            if kept.memory_id in selection.memory_ids or gone & {turn.turn_id for turn in kept.turns}
        ]
        if selection.memory_ids:
            gone = {turn.turn_id for kept in hit for turn in kept.turns}
        changed: list[TurnResult] = []
        if not dry_run:
            self.kept[space] = [kept for kept in held if kept not in hit]
            for kept in hit:
                left = [turn for turn in kept.turns if turn.turn_id not in gone]
                anew = self._keep(space, left)
                changed += [
                    TurnResult(turn_id=turn.turn_id, state=TurnState.SEARCHABLE, memory_ids=(anew,)) for turn in left
                ]
        found = {kept.memory_id for kept in hit}
        return Erasure(
            erased_memory_ids=tuple(kept.memory_id for kept in hit),
            erased_turn_ids=tuple(turn.turn_id for kept in hit for turn in kept.turns if turn.turn_id in gone),
            not_found=tuple(memory_id for memory_id in selection.memory_ids if memory_id not in found),
            residual=(Residue(component=Component.VECTOR, verified=True),),
            changed=tuple(changed),
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        self._enter(space, "reset", ())
        try:
            await asyncio.sleep(self._delay_s)
            if self.erase_fault is not None:
                raise self.erase_fault
            self.kept.pop(space, None)
            return (Residue(component=Component.VECTOR, verified=True),)
        finally:
            self._writing.discard(space)

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        self.log.append(("list_memories", space, ()))
        first = int(after[1:]) if after else 0
        listed = [kept.memory() for kept in self.kept.get(space, ()) if int(kept.memory_id[1:]) > first]
        return self.alter(sorted(listed, key=lambda memory: int(memory.memory_id[1:]))[:limit])

    def turn_ids(self, space: str) -> list[str]:
        """The turns that are held, in the order in which they were added."""
        return [turn.turn_id for kept in self.kept.get(space, ()) for turn in kept.turns]

    def calls(self, kind: str) -> list[tuple[str, ...]]:
        """The ids of each call of a kind."""
        return [ids for name, _, ids in self.log if name == kind]

    def _enter(self, space: str, kind: str, ids: Iterable[str]) -> None:
        assert space not in self._writing, f"{kind} overlaps another writing call in {space}"
        self._writing.add(space)
        self.most_spaces_at_once = max(self.most_spaces_at_once, len(self._writing))
        self.log.append((kind, space, tuple(ids)))


def without(*features: Feature) -> Mapping[Feature, Support]:
    """All features but these."""
    return {feature: support for feature, support in ALL_FEATURES.items() if feature not in features}


def _fits(kept: _Kept, query: Query) -> bool:
    time = kept.turns[0].time
    if query.session_ids and not {turn.session_id for turn in kept.turns} & set(query.session_ids):
        return False
    if query.since is not None and (time is None or time < query.since):
        return False
    return query.until is None or (time is not None and time < query.until)


class DurableToy:
    """Writes each turn in two steps with a pause between them, into an SQLite file; a kill leaves halves behind.

    `fail_percent`: of the turns, by the number at the end of their id, that many fail when they are first tried.
    """

    def __init__(self, path: Path, *, step_s: float = 0.001, read_s: float = 0.0, fail_percent: int = 0) -> None:
        self._info = SystemInfo(
            name="durable-toy",
            adapter=Software(name="durable-toy", version="1"),
            framework=Software(name="sqlite", version=sqlite3.sqlite_version),
            features=dict.fromkeys(
                (Feature.FORGET_TURNS, Feature.FORGET_SESSIONS, Feature.LIST_MEMORIES, Feature.SOURCES, Feature.USAGE),
                Support.NATIVE,
            ),
        )
        self._path = path
        self._step_s = step_s
        self._read_s = read_s
        self._fail_percent = fail_percent

    @property
    def info(self) -> SystemInfo:
        return self._info

    async def start(self) -> None:
        self._store = sqlite3.connect(self._path, isolation_level=None)
        self._store.execute("PRAGMA journal_mode = WAL")
        self._store.execute("PRAGMA secure_delete = ON")
        self._store.execute(
            "CREATE TABLE IF NOT EXISTS halves"
            " (n INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT, session_id TEXT, turn_id TEXT, half TEXT)"
        )
        self._store.execute("CREATE TABLE IF NOT EXISTS tried (turn_id TEXT PRIMARY KEY)")

    async def close(self) -> None:
        self._store.close()

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        outcomes = []
        for turn in turns:
            usage.count(model="durable-model", purpose="extraction", input_tokens=1)
            middle = len(turn.text) // 2
            self._write(space, turn, turn.text[:middle])
            await asyncio.sleep(self._step_s)
            if self._fails(turn):
                outcomes.append(Outcome(state=TurnState.FAILED, error=_BROKEN))
                continue
            self._write(space, turn, turn.text[middle:])
            outcomes.append(Outcome(state=TurnState.SEARCHABLE, memory_ids=(turn.turn_id,)))
        return Batch(outcomes=outcomes)

    def _fails(self, turn: Turn) -> bool:
        if not self._fail_percent or int(turn.turn_id.rsplit("-", 1)[-1]) % 100 >= self._fail_percent:
            return False
        return self._store.execute("INSERT OR IGNORE INTO tried VALUES (?)", (turn.turn_id,)).rowcount == 1

    def _write(self, space: str, turn: Turn, half: str) -> None:
        self._store.execute(
            "INSERT INTO halves (space, session_id, turn_id, half) VALUES (?, ?, ?, ?)",
            (space, turn.session_id, turn.turn_id, half),
        )

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        await asyncio.sleep(self._read_s)
        words = query.text.lower().split()
        return [
            replace(memory, score=1.0)
            for memory in await self.list_memories(space, after="", limit=100_000)
            if any(word in memory.text.lower() for word in words)
        ][: query.top_k]

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        gone = []
        for turn_id in selection.turn_ids:
            done = self._store.execute("DELETE FROM halves WHERE space = ? AND turn_id = ?", (space, turn_id))
            gone += [turn_id] if done.rowcount else []
        return Erasure(
            erased_memory_ids=tuple(gone), erased_turn_ids=tuple(gone), residual=(Residue(component=Component.GRAPH),)
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        self._store.execute("DELETE FROM halves WHERE space = ?", (space,))
        await asyncio.sleep(self._step_s)
        return (Residue(component=Component.GRAPH, verified=True),)

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        rows = self._store.execute(
            "SELECT n, session_id, turn_id, half FROM halves WHERE space = ? ORDER BY n", (space,)
        ).fetchall()
        texts: dict[str, list[str]] = {}
        sessions = {turn_id: session_id for _, session_id, turn_id, _ in rows}
        for _, _, turn_id, half in rows:
            texts.setdefault(turn_id, []).append(half)
        listed = [
            Memory(
                memory_id=turn_id,
                text="".join(halves),
                kind="turn",
                sources=(Source(session_id=sessions[turn_id], turn_id=turn_id),),
            )
            for turn_id, halves in texts.items()
        ]
        first = next((index + 1 for index, memory in enumerate(listed) if memory.memory_id == after), 0)
        return listed[first : first + limit]
