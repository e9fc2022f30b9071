"""Retrieve, ListMemories and ListTurns: the calls that change nothing."""

from collections.abc import Awaitable, Callable, Sequence

from memdock import usage
from memdock.convert import read_query, wire_record, wire_timing, wire_usage
from memdock.engine.faults import broken_interface, told
from memdock.engine.features import require, require_query
from memdock.engine.pages import read_token, write_token
from memdock.engine.passing import check_answer, pass_on, source_ids, stands
from memdock.engine.spaces import Space, Spaces
from memdock.engine.spending import Spending
from memdock.ledger import Ledger
from memdock.service import Call
from memdock.system import ListsMemories, System
from memdock.types import Feature, Memory
from memdock.usage import Meter
from memdock.v1 import memory_pb2 as pb

_DEFAULT_PAGE_SIZE = 256


class Reader:
    """Passes on what the system answers, after a look at the ledger."""

    def __init__(self, system: System, ledger: Ledger, spaces: Spaces, spending: Spending) -> None:
        self._system = system
        self._ledger = ledger
        self._spaces = spaces
        self._spending = spending

    async def retrieve(self, request: pb.RetrieveRequest, call: Call) -> pb.RetrieveResponse:  # noqa: ARG002
        """The memories that fit. Turns are counted first: what is pending then may be missing in the answer."""
        query = read_query(request)
        require_query(self._system.info, query)
        space = self._spaces.at(request.space_id)
        counts = await self._ledger.counts(space.name)
        begun = space.resets_begun
        memories, meter = await self._ask(space, lambda: self._system.retrieve(space.name, query), query.top_k)
        return pb.RetrieveResponse(
            memories=await self._shown(space, memories, begun),
            pending=counts.pending,
            failed_count=counts.failed,
            usage=wire_usage(meter.models),
            timing=wire_timing(meter.timing),
        )

    async def list_memories(self, request: pb.ListMemoriesRequest, call: Call) -> pb.ListMemoriesResponse:  # noqa: ARG002
        """One page of all memories, where declared."""
        require(self._system.info, Feature.LIST_MEMORIES, "FEATURE_UNSUPPORTED", "ListMemories")
        if not isinstance(self._system, ListsMemories):
            raise broken_interface("it declares FEATURE_LIST_MEMORIES and has no list_memories")
        system, space, size = self._system, self._spaces.at(request.space_id), request.page_size or _DEFAULT_PAGE_SIZE
        after = read_token("memories", space.name, request.page_token)
        begun, more = space.resets_begun, size + 1
        memories, _ = await self._ask(space, lambda: system.list_memories(space.name, after=after, limit=more), more)
        page = memories[:size]
        return pb.ListMemoriesResponse(
            memories=await self._shown(space, page, begun),
            next_page_token=write_token("memories", space.name, page[-1].memory_id) if len(memories) == more else "",
        )

    async def list_turns(self, request: pb.ListTurnsRequest, call: Call) -> pb.ListTurnsResponse:  # noqa: ARG002
        """One page of all turns, in the order of acceptance."""
        name, size = request.space_id, request.page_size or _DEFAULT_PAGE_SIZE
        after = int(read_token("turns", name, request.page_token) or 0)
        rows = await self._ledger.turns(name, after=after, limit=size + 1)
        page = rows[:size]
        return pb.ListTurnsResponse(
            turns=[wire_record(row.record) for row in page],
            next_page_token=write_token("turns", name, str(page[-1].seq)) if len(rows) > size else "",
        )

    async def _ask(
        self, space: Space, read: Callable[[], Awaitable[Sequence[Memory]]], most: int
    ) -> tuple[Sequence[Memory], Meter]:
        """What the system answers, at most `most`, and what that took; nothing while a Reset is under way."""
        with usage.collect() as meter:
            if space.resetting:
                return (), meter
            try:
                with told("read_failed"):
                    with usage.stage("system"):
                        memories = await read()
                    check_answer(memories, most)
            finally:
                self._spending.add(space.name, meter.models)
        return memories, meter

    async def _shown(self, space: Space, memories: Sequence[Memory], begun: int) -> list[pb.Memory]:
        """Those of the memories that may be shown; none when a Reset began after the system was asked."""
        turn_ids = source_ids(memories)
        records = await self._ledger.find(space.name, turn_ids) if turn_ids else {}
        if space.resets_begun != begun:
            return []
        return [pass_on(memory) for memory in memories if not space.hides(memory.memory_id) and stands(memory, records)]
