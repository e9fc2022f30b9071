"""Forget and Reset: the requests; `erasing` carries them out."""

import asyncio

from memdock import usage
from memdock.convert import read_selection
from memdock.engine.background import Background
from memdock.engine.barrier import DEADLINE_SHARE
from memdock.engine.erasing import Erasing, in_progress
from memdock.engine.erasure_answers import for_system, preview_answer
from memdock.engine.faults import told
from memdock.engine.features import require_selection
from memdock.engine.spaces import Space, Spaces
from memdock.engine.spending import Spending
from memdock.ledger import ErasureKind, Ledger
from memdock.service import Call
from memdock.system import System
from memdock.types import Selection, TurnState
from memdock.v1 import memory_pb2 as pb


class Eraser:
    """Answers Forget and Reset with what was erased, or with ABORTED while it goes on."""

    def __init__(
        self,
        system: System,
        ledger: Ledger,
        spaces: Spaces,
        erasing: Erasing,
        spending: Spending,
        background: Background,
    ) -> None:
        self._system = system
        self._ledger = ledger
        self._spaces = spaces
        self._erasing = erasing
        self._spending = spending
        self._background = background

    async def forget(self, request: pb.ForgetRequest, call: Call) -> pb.ForgetResponse:
        """Erases what is selected, pending turns too."""
        selection = read_selection(request.selector)
        require_selection(self._system.info, selection, dry_run=request.dry_run)
        space = self._spaces.at(request.space_id)
        if request.dry_run:
            return await self._background.finish(self._preview(space, selection))
        attempt = await self._erasing.begin(space, ErasureKind.FORGET, selection, request.request_id)
        return pb.ForgetResponse.FromString(await _answer(attempt, call))

    async def reset(self, request: pb.ResetRequest, call: Call) -> pb.ResetResponse:
        """Makes the space as if never used."""
        space = self._spaces.at(request.space_id)
        attempt = await self._erasing.begin(space, ErasureKind.RESET, Selection(), request.request_id)
        return pb.ResetResponse.FromString(await _answer(attempt, call))

    async def _preview(self, space: Space, selection: Selection) -> pb.ForgetResponse:
        async with space.lock:
            resolution = await self._ledger.resolve(space.name, selection)
            with usage.collect() as meter:
                try:
                    with told("preview_failed"):
                        erasure = await self._system.forget(space.name, for_system(selection, resolution), dry_run=True)
                finally:
                    self._spending.add(space.name, meter.models)
            known = await self._ledger.find(space.name, erasure.erased_turn_ids)
        taken = tuple(turn_id for turn_id, record in known.items() if record.state is not TurnState.FORGOTTEN)
        return preview_answer(resolution, erasure, taken, meter)


async def _answer(attempt: asyncio.Future[bytes], call: Call) -> bytes:
    left_s = call.left_s()
    try:
        async with asyncio.timeout(None if left_s is None else left_s * DEADLINE_SHARE):
            return await asyncio.shield(attempt)
    except TimeoutError:
        raise in_progress("it goes on when the work in flight has ended") from None
