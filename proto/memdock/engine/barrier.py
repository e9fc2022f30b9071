"""Flush: waits until all that was accepted before has left PENDING, and tells the truth when it has not."""

import asyncio
import time

from memdock.convert import read_duration, wire_result, wire_timing, wire_usage
from memdock.engine.background import Background
from memdock.engine.spaces import Space, Spaces
from memdock.engine.spending import Spending
from memdock.engine.worker import Worker
from memdock.ledger import Ledger
from memdock.service import Call
from memdock.types import Limits, StageTiming, TurnResult
from memdock.v1 import memory_pb2 as pb

_DEFAULT_WAIT_S = 30.0
_MAX_FAILED = 256

DEADLINE_SHARE = 0.95
"""How much of the time that a caller gives is used for waiting; the rest is for the answer's way back."""


class Barrier:
    """Answers Flush. A waiting Flush costs a look at the ledger for each change in its space, and nothing else."""

    def __init__(
        self,
        ledger: Ledger,
        spaces: Spaces,
        worker: Worker,
        spending: Spending,
        background: Background,
        limits: Limits,
    ) -> None:
        self._ledger = ledger
        self._spaces = spaces
        self._worker = worker
        self._spending = spending
        self._background = background
        self._limits = limits

    async def flush(self, request: pb.FlushRequest, call: Call) -> pb.FlushResponse:
        """Closes open buffers and waits; running out of time is an answer."""
        started = time.monotonic()
        space = self._spaces.at(request.space_id)
        last = await self._ledger.last_pending(space.name)
        if last:
            space.barrier = max(space.barrier, last)
            self._worker.wake(space)
        done = await self._passes(space, last, started + self._wait_s(request, call))
        waited = StageTiming(stage="wait", ms=(time.monotonic() - started) * 1e3)
        await self._spending.written()
        counts = await self._ledger.counts(space.name)
        failed = await self._ledger.failed(space.name, limit=_MAX_FAILED)
        return pb.FlushResponse(
            done=done or not counts.pending,  # the last one may have ended between the wait and the count
            pending=counts.pending,
            failed_count=counts.failed,
            failed=[
                wire_result(TurnResult(turn_id=row.record.turn_id, state=row.record.state, error=row.record.error))
                for row in failed
            ],
            space_usage=wire_usage(await self._ledger.spent(space.name)),
            timing=wire_timing([waited]),
        )

    async def _passes(self, space: Space, last: int, until: float) -> bool:
        """Whether no turn up to `last` is pending any more, waiting for it `until` a monotonic time."""
        while True:
            changed = space.changed
            if not last or not (await self._ledger.counts(space.name, upto=last)).pending:
                return True
            left_s = until - time.monotonic()
            if left_s <= 0 or self._background.stopping.is_set():
                return False
            try:
                async with asyncio.timeout(left_s):
                    await changed.wait()
            except TimeoutError:
                continue

    def _wait_s(self, request: pb.FlushRequest, call: Call) -> float:
        wanted_s = read_duration(request.timeout) if request.HasField("timeout") else _DEFAULT_WAIT_S
        left_s = call.left_s()
        shares = [wanted_s, self._limits.max_wait_s] + ([] if left_s is None else [left_s * DEADLINE_SHARE])
        return min(shares)
