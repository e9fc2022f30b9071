"""Memory systems that are filled, asked, and told to forget."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from memdock.client import connect_async
from memdock.types import Forgotten, Selection, TurnRecord
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.run.memory_system import MemorySystem
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.run.tools import Tools, open_tools
from memdock_evaluator.waiting import Say

DEEP_K = 100
"""How deep is looked for what should not be there: the protocol's limit on `top_k`, or the system's own."""


class ErasableSystem(MemorySystem):
    """A memory system that can also be told to forget. Methods raise `Fault` or `RunStoppedError`."""

    @property
    def deep_k(self) -> int:
        """`DEEP_K`, or less where the system gives less."""
        return min(DEEP_K, self.description.limits.max_top_k)

    async def forget(self, space_id: str, selection: Selection) -> Forgotten:
        """Erases what is selected; all tries are one erasure, so that a lost answer is asked for again."""
        request_id = secrets.token_hex(16)

        async def once() -> Forgotten:
            return await self._client.forget(
                space_id,
                memory_ids=selection.memory_ids,
                turn_ids=selection.turn_ids,
                session_ids=selection.session_ids,
                request_id=request_id,
            )

        return (await self._patiently(once)).result

    async def turns_by_id(self, space_id: str) -> Mapping[str, TurnRecord]:
        """Every turn that the space holds or has forgotten."""
        return {record.turn_id: record for record in await self.list_turns(space_id)}


async def give_back(systems: Mapping[str, ErasableSystem], places: Iterable[str], say: Say) -> list[str]:
    """Resets spaces, named as system/space; those for which that failed. Raises nothing."""
    left = []
    for place in places:
        name, _, space_id = place.partition("/")
        try:
            await systems[name].reset(space_id)
        except (Fault, RunStoppedError) as fault:
            say(f"{name}: space {space_id} was not reset: {fault}")
            left.append(place)
    return left


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The systems under test by their names, and what `run` would work with."""

    systems: Mapping[str, ErasableSystem]
    tools: Tools


async def open_systems(settings: RunSettings, languages: Sequence[str], stack: AsyncExitStack, say: Say) -> Opened:
    """Opens everything as `run` does, with its checks and its errors; `stack` closes it."""
    tools = await open_tools(settings, tuple(languages), stack, say)
    systems = {}
    for name, system in tools.systems.items():
        client = connect_async(settings.url, system=name, key=settings.key, timeout_s=settings.call_timeout_s)
        systems[name] = ErasableSystem(
            await stack.enter_async_context(client),
            system.description,
            name=name,
            patience_s=settings.patience_s,
            say=say,
        )
    return Opened(systems=systems, tools=tools)
