"""Holds an adapter's answer to the request it stands for. An answer that breaks the contract never reaches a caller.

Ids are compared, never quoted: a wrong answer may hold what belongs to somebody else.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from memdock.errors import MemdockError, error
from memdock.v1 import memory_pb2 as pb

DEFAULT_TOP_K = 10
DEFAULT_PAGE_SIZE = 256
MAX_FAILED = 256
MAX_PAGE_TOKEN_BYTES = 4096


def protocol_error(system: str, what: str) -> MemdockError:
    """ADAPTER_PROTOCOL_ERROR, told in our words alone."""
    return error("ADAPTER_PROTOCOL_ERROR", f"the adapter of {system} broke the protocol: {what}")


def check_answer(system: str, request: Any, answer: Any) -> None:
    """Raises ADAPTER_PROTOCOL_ERROR where `answer` cannot be one to `request`."""
    check = _CHECKS.get(type(answer))
    wrong = check(request, answer) if check else None
    if wrong:
        raise protocol_error(system, wrong)


def _add_turns(request: Any, answer: Any) -> str | None:
    if len(answer.results) != len(request.turns):
        return "it answered for another number of turns than it was given"
    for turn, result in zip(request.turns, answer.results, strict=True):
        if result.turn_id != turn.turn_id:
            return "it answered for a turn that it was not given"
    return _turn_states(answer.results)


def _flush(_request: Any, answer: Any) -> str | None:
    if len(answer.failed) > MAX_FAILED:
        return f"it listed more than {MAX_FAILED} failed turns"
    if len(answer.failed) > answer.failed_count:
        return "it listed more failed turns than it counted"
    return _turn_states(answer.failed)


def _retrieve(request: Any, answer: Any) -> str | None:
    top_k = request.top_k if request.HasField("top_k") else DEFAULT_TOP_K
    if len(answer.memories) > top_k:
        return "it gave more memories than top_k"
    return _memories(answer.memories)


def _forget(request: Any, answer: Any) -> str | None:
    selector = request.selector
    asked = {*selector.memory_ids, *selector.turn_ids, *selector.session_ids}
    if not asked.issuperset(answer.not_found):
        return "it did not find ids that it was not given"
    if selector.turn_ids and not asked.issuperset(answer.erased_turn_ids):
        return "it erased turns that it was not given"
    return _residual(answer)


def _residual(answer: Any) -> str | None:
    return None if all(part.component for part in answer.residual) else "it left out a component of the residue"


def _reset(_request: Any, answer: Any) -> str | None:
    return _residual(answer)


def _list_turns(request: Any, answer: Any) -> str | None:
    if not all(turn.turn_id and turn.session_id for turn in answer.turns):
        return "it listed a turn without its ids"
    return _page(request, answer, len(answer.turns)) or _turn_states(answer.turns)


def _list_memories(request: Any, answer: Any) -> str | None:
    return _page(request, answer, len(answer.memories)) or _memories(answer.memories)


def _describe(_request: Any, answer: Any) -> str | None:
    if not answer.HasField("adapter") or not answer.HasField("limits"):
        return "it left out what it is or its limits"
    if not all(one.feature and one.support for one in answer.features):
        return "it left out a feature or how far it goes"
    return None if "v1" in answer.protocol_versions else "it does not speak v1"


def _page(request: Any, answer: Any, count: int) -> str | None:
    if count > (request.page_size or DEFAULT_PAGE_SIZE):
        return "it gave a larger page than asked for"
    if len(answer.next_page_token) > MAX_PAGE_TOKEN_BYTES:
        return "its page token is too long"
    return None


def _memories(memories: Iterable[Any]) -> str | None:
    for memory in memories:
        if not memory.memory_id:
            return "it gave a memory without an id"
        if not math.isfinite(memory.score):  # 0 where there is none
            return "it gave a score that is no number"
    return None


def _turn_states(results: Iterable[Any]) -> str | None:
    for result in results:
        # A state that is newer than this gateway passes.
        if result.state == pb.TURN_STATE_UNSPECIFIED:
            return "it gave a turn no state"
        if (result.state == pb.TURN_STATE_FAILED) != result.HasField("error"):
            return "a turn must have an error when, and only when, it failed"
    return None


_CHECKS: Mapping[type, Callable[[Any, Any], str | None]] = {
    pb.AddTurnsResponse: _add_turns,
    pb.FlushResponse: _flush,
    pb.RetrieveResponse: _retrieve,
    pb.ForgetResponse: _forget,
    pb.ResetResponse: _reset,
    pb.ListTurnsResponse: _list_turns,
    pb.ListMemoriesResponse: _list_memories,
    pb.DescribeResponse: _describe,
}
