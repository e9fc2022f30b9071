"""AddTurns: accepts turns durably, then lets the worker know."""

from collections.abc import Sequence

from memdock import usage
from memdock.convert import read_turn, wire_result, wire_timing
from memdock.engine.background import Background
from memdock.engine.spaces import Space, Spaces
from memdock.engine.worker import Worker
from memdock.errors import AlreadyExistsError, FieldError
from memdock.ledger import Admission, Ledger
from memdock.service import Call
from memdock.types import Turn
from memdock.v1 import memory_pb2 as pb


class Admitter:
    """Answers AddTurns as soon as its turns are in the ledger."""

    def __init__(self, ledger: Ledger, spaces: Spaces, worker: Worker, background: Background) -> None:
        self._ledger = ledger
        self._spaces = spaces
        self._worker = worker
        self._background = background

    async def add_turns(self, request: pb.AddTurnsRequest, call: Call) -> pb.AddTurnsResponse:  # noqa: ARG002
        """All turns or none; whoever leaves meanwhile leaves them accepted and worked on, or absent."""
        turns = [read_turn(message) for message in request.turns]
        with usage.collect() as meter, usage.stage("ledger"):
            admission = await self._background.finish(self._admit(self._spaces.at(request.space_id), turns))
        if admission.conflicts:
            raise _conflict(turns, admission.conflicts)
        return pb.AddTurnsResponse(
            results=[wire_result(result) for result in admission.results], timing=wire_timing(meter.timing)
        )

    async def _admit(self, space: Space, turns: Sequence[Turn]) -> Admission:
        try:
            return await self._ledger.admit(space.name, turns)
        finally:
            self._worker.wake(space)  # also after an error: a commit may have happened although its answer was lost


def _conflict(turns: Sequence[Turn], indexes: Sequence[int]) -> AlreadyExistsError:
    first = indexes[0]
    return AlreadyExistsError(
        "TURN_ID_CONFLICT",
        f"turns[{first}].turn_id {turns[first].turn_id!r} stands for other content in this space; nothing was accepted",
        fields=[FieldError(f"turns[{index}].turn_id", "stands for other content in this space") for index in indexes],
    )
