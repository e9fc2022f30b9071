"""Calls of a framework, the same way in every adapter: its failures told by their kind, its model calls checked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from memdock.adapter.model_calls import model_calls
from memdock.errors import MemdockError, error
from memdock.system import Outcome
from memdock.types import TurnError, TurnState

ResultT = TypeVar("ResultT")

RETRYABLE = frozenset(
    {
        "PROVIDER_RATE_LIMITED",
        "PROVIDER_TIMEOUT",
        "PROVIDER_UNREACHABLE",
        "PROVIDER_PROTOCOL_ERROR",
        "STORE_UNREACHABLE",
    }
)
"""Reasons of failures after which the same turn may be taken."""


async def outcome_of(adding: Awaitable[Sequence[str]]) -> Outcome:
    """What became of a turn: `adding` gives the ids of its memories, or raises why there are none."""
    try:
        memory_ids = await adding
    except MemdockError as fault:
        return failed(fault)
    if not memory_ids:
        return Outcome(state=TurnState.NO_MEMORY)
    return Outcome(state=TurnState.SEARCHABLE, memory_ids=tuple(memory_ids))


def failed(fault: MemdockError) -> Outcome:
    """A turn that could not be stored, and why."""
    told = TurnError(reason=fault.reason, message=fault.message, retryable=fault.reason in RETRYABLE)
    return Outcome(state=TurnState.FAILED, error=told)


class FrameworkCalls:
    """`framework` and `store` are names for people.

    An exception that comes from one of `store_packages`, by itself or by its cause, is STORE_UNREACHABLE, but for a
    `DataError` (PEP 249), which is of what was to be stored: INTERNAL. One from `reply_packages` is
    PROVIDER_PROTOCOL_ERROR; any other INTERNAL. Its words may hold a text of a turn: none is told.
    """

    def __init__(
        self, framework: str, *, store: str, store_packages: Sequence[str], reply_packages: Sequence[str] = ()
    ) -> None:
        self._framework = framework
        self._store = store
        self._store_packages = frozenset(store_packages)
        self._reply_packages = frozenset(reply_packages)

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Runs what blocks in a thread."""
        return await self.finish(asyncio.to_thread(work))

    async def finish(self, work: Awaitable[ResultT]) -> ResultT:
        """Awaits work of the framework. A `MemdockError` passes as it is, also as the cause of another."""
        try:
            return await work
        except MemdockError:
            raise
        except Exception as fault:
            if isinstance(fault.__cause__, MemdockError):
                raise fault.__cause__ from None
            raise self._told(fault) from fault

    async def ask(self, space: str, purpose: str, work: Awaitable[ResultT], *, check: bool = True) -> ResultT:
        """Awaits what asks models; of two failures the model's own is told, which is the cause.

        `purpose` as for `model_calls`. `check`: a model's failure is one also where the framework went on without it.
        """
        with model_calls(space, purpose) as calls:
            try:
                result = await self.finish(work)
            except MemdockError:
                calls.check()
                raise
            if check:
                calls.check()
            return result

    def _told(self, fault: Exception) -> MemdockError:
        kind = type(fault).__name__
        causes = [each for each in (fault, fault.__cause__, fault.__context__) if each is not None]
        packages = {type(each).__module__.partition(".")[0] for each in causes}
        if packages & self._store_packages and not any(map(_is_data_error, causes)):
            return error("STORE_UNREACHABLE", f"{self._store} cannot be used now ({kind}).")
        if packages & self._reply_packages:
            return error("PROVIDER_PROTOCOL_ERROR", "The model's JSON lacks fields that it was asked for.")
        return error("INTERNAL", f"{self._framework} failed ({kind}).")


def _is_data_error(fault: BaseException) -> bool:
    """Whether a database refused a value, by the name that all drivers of Python have for it."""
    return any(kind.__name__ == "DataError" for kind in type(fault).__mro__)
