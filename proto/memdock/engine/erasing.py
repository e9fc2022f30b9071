"""Carries erasures out: each in a task of its own that ends only with the erasure, or with the server."""

import asyncio
import hashlib
import json
from dataclasses import asdict, dataclass

from memdock import usage
from memdock.engine.background import Background, pauses
from memdock.engine.erasure_answers import for_system, forget_answer, reset_answer, with_foreseen
from memdock.engine.faults import check_end, error_of, is_passing, must_end
from memdock.engine.features import has
from memdock.engine.spaces import Space
from memdock.engine.spending import Spending
from memdock.engine.worker import Worker
from memdock.errors import AbortedError, MemdockError, UnavailableError
from memdock.findings import refuse
from memdock.ledger import ErasureKind, Intent, Ledger
from memdock.log import log_fault
from memdock.system import System
from memdock.types import Feature, Selection
from memdock.usage import Meter

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 60.0
_RETRY_AFTER_S = 1.0


def in_progress(why: str) -> AbortedError:
    """The answer of a Forget or Reset whose end cannot be told now; `why` stands last, since it may be long."""
    again = (
        "send the same request again, with its request_id, to learn how the erasure ended; without one it is another"
    )
    return AbortedError("IN_PROGRESS", f"{again}: {why}", retry_after_s=_RETRY_AFTER_S)


@dataclass(slots=True, kw_only=True)
class Running:
    """An erasure under way. `attempt` ends with its answer, or with why the present attempt failed."""

    intent: Intent
    attempt: asyncio.Future[bytes]

    def fail(self, error: MemdockError) -> None:
        """Tells those who wait; whoever comes now waits for the next attempt."""
        self.attempt.set_exception(error)
        self.attempt.exception()  # it is no fault that nobody waits
        self.attempt = asyncio.get_running_loop().create_future()


class Erasing:
    """Begins, joins and resumes erasures.

    Those of a space are carried out in the order in which they began. One that fails for a passing reason is tried
    again until it succeeds; a Reset whatever the reason, since its space must not show what it held.
    """

    def __init__(
        self, system: System, ledger: Ledger, worker: Worker, spending: Spending, background: Background
    ) -> None:
        self._system = system
        self._ledger = ledger
        self._worker = worker
        self._spending = spending
        self._background = background
        self._running: dict[int, Running] = {}

    async def begin(
        self, space: Space, kind: ErasureKind, selection: Selection, request_id: str
    ) -> asyncio.Future[bytes]:
        """Writes an erasure down and starts it, or finds the one that `request_id` names.

        What comes back ends with the answer, or with why the attempt that is under way now failed.
        """
        return await self._background.finish(self._begin(space, kind, selection, request_id))

    async def resume(self, space: Space) -> None:
        """Goes on with erasures that are written down and that nobody carries out."""
        for intent in await self._ledger.open_erasures(space.name):
            if intent.erasure_id not in self._running:
                self._start(space, intent)

    async def _begin(
        self, space: Space, kind: ErasureKind, selection: Selection, request_id: str
    ) -> asyncio.Future[bytes]:
        if kind is ErasureKind.RESET:
            space.begin_reset()  # Retrieve is empty from here on, also before the ledger has answered
        try:
            begun = await self._ledger.begin_erasure(
                space.name, kind, selection, request_id=request_id, fingerprint=_fingerprint(kind, selection)
            )
            space.notify()
            if begun.intent is not None:
                running = self._running.get(begun.intent.erasure_id) or self._start(space, begun.intent)
                return running.attempt
            if begun.answer is not None:
                known = asyncio.get_running_loop().create_future()
                known.set_result(begun.answer)
                return known
            raise refuse("VALIDATION_FAILED", "request_id", "was used in this space for another request")
        except UnavailableError:
            self._background.spawn(self._adopt(space))
            raise
        finally:
            if kind is ErasureKind.RESET:
                space.end_reset()

    async def _adopt(self, space: Space) -> None:
        """After a lost answer of the ledger: what it has written down all the same is carried out."""
        for pause_s in pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S):
            await self._background.pause(pause_s)
            if self._background.stopping.is_set():
                return
            try:
                await self.resume(space)
            except UnavailableError as fault:
                log_fault("ledger_failed", fault)
            else:
                return

    def _start(self, space: Space, intent: Intent) -> Running:
        running = Running(intent=intent, attempt=asyncio.get_running_loop().create_future())
        self._running[intent.erasure_id] = running
        space.begin_erasure(intent)
        self._background.spawn(self._carry_out(space, running))
        return running

    async def _carry_out(self, space: Space, running: Running) -> None:
        try:
            answer = await self._until_done(space, running)
        finally:
            del self._running[running.intent.erasure_id]
            space.end_erasure(running.intent)
            self._worker.wake(space)
        if answer is not None:
            running.attempt.set_result(answer)

    async def _until_done(self, space: Space, running: Running) -> bytes | None:
        """The answer; `None` when the erasure was given up or overtaken, or the server ends first."""
        for pause_s in pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S):
            try:
                async with space.lock:
                    intent = await self._still_open(running.intent)
                    if intent is not None:
                        return await self._attempt(intent)
                running.fail(in_progress("it ended meanwhile, or a Reset took its place"))
                break
            except BaseException as fault:
                if must_end(fault):
                    raise
                log_fault("erasure_failed", fault)
                if not is_passing(fault) and running.intent.kind is ErasureKind.FORGET:
                    await self._give_up(running, fault)
                    break
                error = error_of(fault)
                running.fail(in_progress(f"it goes on after {error.reason} ({error.message})"))
            await self._background.pause(pause_s)
            if self._background.stopping.is_set():
                running.fail(in_progress("the server is ending, and goes on with it after its next start"))
                break
        return None

    async def _still_open(self, intent: Intent) -> Intent | None:
        """The erasure as the ledger has it now, `None` where it is no longer to be carried out: it would take from the
        system what came after it."""
        opened = await self._ledger.open_erasures(intent.space)
        return next((one for one in opened if one.erasure_id == intent.erasure_id), None)

    async def _attempt(self, intent: Intent) -> bytes:
        with usage.collect() as meter:
            try:
                answer = await (self._reset if intent.kind is ErasureKind.RESET else self._forget)(intent, meter)
                await self._ledger.finish_erasure(intent, answer=answer, usage=meter.models)
            except BaseException:
                self._spending.add(intent.space, meter.models)
                raise
        return answer

    async def _reset(self, intent: Intent, meter: Meter) -> bytes:
        residual = await self._system.reset(intent.space)
        return reset_answer(intent, residual, await self._ledger.erase(intent), meter)

    async def _forget(self, intent: Intent, meter: Meter) -> bytes:
        selection = for_system(intent.selection, intent.resolution)
        if selection.memory_ids and not intent.foreseen_memories:
            await self._foresee(intent, selection)
        erasure = with_foreseen(await self._system.forget(intent.space, selection, dry_run=False), intent)
        for result in erasure.changed:
            check_end(result)
        taken = await self._ledger.erase(
            intent,
            turn_ids=erasure.erased_turn_ids,
            memory_ids=erasure.erased_memory_ids,
            changed=erasure.changed,
        )
        return forget_answer(intent, erasure, taken, meter)

    async def _foresee(self, intent: Intent, selection: Selection) -> None:
        """Which turns a memory stood on the system can tell, where it has dry runs, and only until it has taken them;
        else it is what it told as it made the memory."""
        if has(self._system.info, Feature.FORGET_DRY_RUN):
            seen = await self._system.forget(intent.space, selection, dry_run=True)
            turn_ids, memory_ids = seen.erased_turn_ids, seen.erased_memory_ids
        else:
            known = await self._ledger.recorded(intent.space, selection.memory_ids)
            turn_ids, memory_ids = known.turn_ids, known.memory_ids
        await self._ledger.foresee(intent, turn_ids=turn_ids, memory_ids=memory_ids)

    async def _give_up(self, running: Running, fault: BaseException) -> None:
        """A Forget that the system refuses would be refused for ever: its caller is told why and may repeat it."""
        try:
            await self._ledger.abandon_erasure(running.intent)
        except MemdockError as second:
            log_fault("erasure_not_abandoned", second)
        running.fail(error_of(fault))


def _fingerprint(kind: ErasureKind, selection: Selection) -> bytes:
    return hashlib.sha256(json.dumps([kind, asdict(selection)]).encode()).digest()
