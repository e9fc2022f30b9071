"""Works on accepted turns: one task a space, in acceptance order, a bounded number of spaces at once."""

import asyncio
import time
from collections.abc import Sequence

import structlog

from memdock.engine.background import Background, pauses
from memdock.engine.batches import Attempt, attempt, interrupted
from memdock.engine.faults import is_passing
from memdock.engine.features import has
from memdock.engine.spaces import Space
from memdock.engine.spending import Spending
from memdock.ledger import Ledger, PendingTurn
from memdock.log import log_fault
from memdock.system import System
from memdock.types import Feature

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0

_log = structlog.get_logger("memdock")


class Worker:
    """Hands pending turns to the system and settles what becomes of them. `add` is never cancelled."""

    def __init__(
        self,
        system: System,
        ledger: Ledger,
        spending: Spending,
        background: Background,
        *,
        parallel_spaces: int,
        batch_turns: int,
    ) -> None:
        self._system = system
        self._ledger = ledger
        self._spending = spending
        self._background = background
        self._places = asyncio.Semaphore(parallel_spaces)
        self._batch_turns = batch_turns
        self._can_forget = has(system.info, Feature.FORGET_TURNS)

    def wake(self, space: Space) -> None:
        """Says that there may be work in a space."""
        space.wanted = True
        if not space.working and not self._background.stopping.is_set():
            space.working = True
            self._background.spawn(self._work(space))

    async def _work(self, space: Space) -> None:
        waits = pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        try:
            while space.wanted and not self._background.stopping.is_set():
                space.wanted = False
                try:
                    async with self._places, space.lock:
                        more = await self._step(space)
                except Exception as fault:  # noqa: BLE001 - the ledger is away, and the turns wait for it
                    log_fault("ledger_failed", fault)
                    await self._background.pause(next(waits))
                    more = True
                else:
                    waits = pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
                space.wanted = space.wanted or more  # a wake during the step has set it meanwhile
                space.notify()
        finally:
            space.working = False

    async def _step(self, space: Space) -> bool:
        """Works on one batch; answers whether there may be more to do at once."""
        if space.resetting:
            return False  # the end of the reset wakes again
        turns, final = await self._next_turns(space)
        if not turns:
            return False
        started = time.perf_counter()
        done = await self._attempt(space, turns, final=final)
        done = await self._settle(space, done)
        answered = len(done.batch.outcomes)
        _log.info(
            "batch",
            turns=len(turns),
            answered=answered,
            failed=done.failed_count,
            final=final,
            elapsed_ms=round((time.perf_counter() - started) * 1e3, 2),
        )
        return answered > 0

    async def _next_turns(self, space: Space) -> tuple[Sequence[PendingTurn], bool]:
        """The oldest pending turns, cut at the barrier so that later turns cannot keep a buffer open."""
        barrier = space.barrier
        if barrier:
            turns = await self._ledger.pending(space.name, upto=barrier, limit=self._batch_turns)
            if turns:
                return turns, len(turns) < self._batch_turns or turns[-1].seq == barrier
            if space.barrier == barrier:
                space.barrier = 0
        return await self._ledger.pending(space.name, limit=self._batch_turns), False

    async def _attempt(self, space: Space, turns: Sequence[PendingTurn], *, final: bool) -> Attempt:
        leftovers: tuple[str, ...] = ()
        if not self._ledger.shares_transaction:
            lost = [held for held in turns if held.started]
            if lost and not self._can_forget:
                return interrupted(lost)
            if self._can_forget:
                leftovers = tuple(held.turn.turn_id for held in turns if held.started or held.retried)
            await self._ledger.start(space.name, [held.seq for held in turns])
        return await attempt(
            self._system,
            space.name,
            turns,
            final=final,
            full=len(turns) == self._batch_turns,
            leftovers=leftovers,
        )

    async def _settle(self, space: Space, done: Attempt) -> Attempt:
        try:
            await self._ledger.settle(space.name, done.settled, usage=done.spent, write=done.batch.write)
        except Exception as fault:
            if is_passing(fault):
                self._spending.add(space.name, done.spent)
                raise
            log_fault("write_failed", fault)
            done = done.unkept(fault)
            await self._ledger.settle(space.name, done.settled, usage=done.spent)
        return done
