"""Turns from JSON lines: every line is read and checked before the first one is sent."""

from collections.abc import Iterable, Iterator, Sequence

from memdock.check import check_turn
from memdock.convert import read_turn, wire_turn
from memdock.errors import InvalidArgumentError
from memdock.types import Limits, Turn
from memdock.v1 import memory_pb2 as pb
from memdock.wire import from_json, to_json

ROOM_BYTES = 64 * 1024
"""Left free in a request for its other fields."""


def read_lines(lines: Iterable[bytes], limits: Limits) -> list[Turn]:
    """The turns of JSON lines, in order; blank lines are skipped. Raises `ValueError` naming the line's number."""
    turns: list[Turn] = []
    line_of: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            message = from_json(pb.Turn, line)
            check_turn(message, limits)
        except InvalidArgumentError as error:
            raise ValueError(f"line {number}: {error.message}; nothing was sent") from None
        first = line_of.setdefault(message.turn_id, number)
        if first != number:
            raise ValueError(f"line {number}: turn_id: is the turn_id of line {first} too; nothing was sent")
        turns.append(read_turn(message))
    return turns


def batches(turns: Sequence[Turn], limits: Limits) -> Iterator[list[Turn]]:
    """The turns in order, as many at once as one request may hold."""
    batch: list[Turn] = []
    size_bytes = 0
    for turn in turns:
        turn_bytes = _size_bytes(turn)
        is_full = len(batch) == limits.max_turns_per_request
        if batch and (is_full or size_bytes + turn_bytes > limits.max_request_bytes - ROOM_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(turn)
        size_bytes += turn_bytes
    if batch:
        yield batch


def _size_bytes(turn: Turn) -> int:
    """What the turn takes on the wider wire, which is JSON."""
    return len(to_json(wire_turn(turn))) + 1
