"""What happens to a run, as server-sent events: states, progress, sentences, until it ends or the client leaves."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import orjson

from memdock.errors import MemdockError
from memdock.keys import Key
from memdock_evaluator.service import shapes
from memdock_evaluator.service.desk import Desk
from memdock_evaluator.service.faults import ResultsUnreachableError

QUIET_S = 15.0
"""After as long without an event a comment is sent, so that nothing on the way takes the connection for dead."""
TERMINAL = ("completed", "incomplete", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    at_s: float
    reading: "asyncio.Task[shapes.Run]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The last event that a client has had, by its id `ATTEMPT.NUMBER` or `ATTEMPT.end`."""

    attempt: int = 0
    number: int = 0
    ended: bool = False

    @classmethod
    def read(cls, event_id: str) -> "Seen":
        """What `Last-Event-ID` says; whatever is no id of ours says nothing."""
        attempt, _, rest = event_id.partition(".")
        if not (attempt.isascii() and attempt.isdecimal() and len(attempt) < 10):
            return cls()
        if rest == "end":
            return cls(attempt=int(attempt), ended=True)
        known = rest.isascii() and rest.isdecimal() and len(rest) < 10
        return cls(attempt=int(attempt), number=int(rest)) if known else cls()


class Watch:
    """Follows runs for clients. All who follow a run share one look at it every `look_s`."""

    def __init__(self, desk: Desk, *, look_s: float) -> None:
        self._desk, self._look_s = desk, look_s
        self._shared: dict[tuple[str, str], _Shared] = {}
        self._ending = asyncio.Event()
        self.watching = 0

    def end(self) -> None:
        """Ends all streams; their clients come again, to another replica."""
        self._ending.set()

    async def events(
        self, key: Key, run_id: str, seen: Seen, allowed: Callable[[], object]
    ) -> AsyncGenerator[bytes, None]:
        """The stream of a run that the caller may see. `allowed` raises once the key is revoked or has expired."""
        with self._counted():
            told: shapes.Run | None = None
            sent_s = time.monotonic()
            yield b"retry: 2000\n\n"
            while not self._ending.is_set():
                run: shapes.Run | None
                try:
                    allowed()
                    run = await self._look(key, run_id)
                except ResultsUnreachableError:
                    run = told
                except MemdockError:
                    return  # removed, or the key ended, meanwhile
                if run is not None and run != told:
                    number = seen.number if run.attempt == seen.attempt else 0
                    for event in _events(run, told, number):
                        yield event
                    sent_s = time.monotonic()
                    newest = run.messages[-1].number if run.messages else 0
                    seen, told = Seen(attempt=run.attempt, number=newest), run
                    if run.state in TERMINAL:
                        return
                elif time.monotonic() - sent_s >= QUIET_S:
                    sent_s = time.monotonic()
                    yield b": still there\n\n"
                await self._wait()

    async def _look(self, key: Key, run_id: str) -> shapes.Run:
        place, now_s = (key.tenant, run_id), time.monotonic()
        shared = self._shared.get(place)
        if shared is None or now_s - shared.at_s >= self._look_s:
            reading = asyncio.create_task(asyncio.to_thread(self._desk.run, key, run_id))
            shared = self._shared[place] = _Shared(at_s=now_s, reading=reading)
            reading.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(shared.reading)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._look_s):
                await self._ending.wait()
        except TimeoutError:
            return

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.watching += 1
        try:
            yield
        finally:
            self.watching -= 1
            if not self.watching:
                self._shared.clear()


def _events(run: shapes.Run, told: shapes.Run | None, number: int) -> list[bytes]:
    """What is new since `told`; of the sentences, those after `number`."""
    new = [message for message in run.messages if message.number > number]
    last = run.messages[-1].number if run.messages else 0
    found = [_event("message", f"{run.attempt}.{each.number}", each.model_dump(mode="json")) for each in new]
    if told is None or told.progress != run.progress:
        counts = {"progress": [count.model_dump() for count in run.progress]}
        found.append(_event("progress", f"{run.attempt}.{last}", counts))
    state = {"state": run.state, "attempt": run.attempt}
    if run.state in TERMINAL:
        whole = run.model_dump(mode="json", include={"exit_code", "sentences", "cost", "currency", "ended"})
        found.append(_event("end", f"{run.attempt}.end", {**state, **whole}))
    elif told is None or told.state != run.state or told.attempt != run.attempt:
        found.append(_event("state", f"{run.attempt}.{last}", state))
    return found


def _event(name: str, event_id: str, data: object) -> bytes:
    return f"event: {name}\nid: {event_id}\ndata: {orjson.dumps(data).decode()}\n\n".encode()
