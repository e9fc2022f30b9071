"""Which memories of a system's answer are passed on: only the space's own, and none that was erased."""

import math
from collections.abc import Mapping, Sequence

from memdock.convert import wire_memory
from memdock.engine.faults import broken_interface
from memdock.errors import InvalidArgumentError
from memdock.types import Memory, TurnRecord, TurnState
from memdock.v1 import memory_pb2 as pb


def check_answer(memories: Sequence[Memory], most: int) -> None:
    """Refuses an answer that is longer than was asked for, or whose memories cannot be told or ranked."""
    if len(memories) > most:
        raise broken_interface(f"{len(memories)} memories where at most {most} were asked for")
    for memory in memories:
        if not memory.memory_id:
            raise broken_interface("a memory without an id")
        if memory.score is not None and not math.isfinite(memory.score):
            raise broken_interface("a score that is not a finite number")


def source_ids(memories: Sequence[Memory]) -> list[str]:
    """The turns that the memories stand on, each once."""
    return list({source.turn_id: None for memory in memories for source in memory.sources})


def stands(memory: Memory, records: Mapping[str, TurnRecord]) -> bool:
    """Whether no turn under the memory is FORGOTTEN; a turn that the space never had is another space's: refused."""
    for source in memory.sources:
        record = records.get(source.turn_id)
        if record is None or record.session_id != source.session_id:
            raise broken_interface("a memory that stands on a turn which is not in the space")
        if record.state is TurnState.FORGOTTEN:
            return False
    return True


def pass_on(memory: Memory) -> pb.Memory:
    """The memory on the wire."""
    try:
        return wire_memory(memory)
    except (InvalidArgumentError, UnicodeEncodeError):
        raise broken_interface("a memory with a naive time, or with text that is not Unicode") from None
