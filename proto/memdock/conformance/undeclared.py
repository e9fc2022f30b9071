"""What a server must answer where it does not declare a feature: UNIMPLEMENTED, never silence."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from memdock.conformance.probe import SAID_AT, Probe, Space, refused
from memdock.types import Feature, Selection

Attempt = Callable[[Space], Awaitable[Any]]


async def _list(space: Space) -> None:
    async for _ in space.client.list_memories(space.space_id):
        pass


_ATTEMPTS: Mapping[Feature, tuple[str, Attempt]] = {
    Feature.FILTER_SESSIONS: (
        "FILTER_UNSUPPORTED", lambda space: space.client.retrieve(space.space_id, "x", session_ids=["s1"]),
    ),
    Feature.FILTER_TIME: (
        "FILTER_UNSUPPORTED", lambda space: space.client.retrieve(space.space_id, "x", since=SAID_AT),
    ),
    Feature.REFERENCE_TIME: (
        "FEATURE_UNSUPPORTED", lambda space: space.client.retrieve(space.space_id, "x", reference_time=SAID_AT),
    ),
    Feature.FORGET_MEMORIES: (
        "SELECTOR_UNSUPPORTED", lambda space: space.client.forget(space.space_id, memory_ids=["m"]),
    ),
    Feature.FORGET_TURNS: (
        "SELECTOR_UNSUPPORTED", lambda space: space.client.forget(space.space_id, turn_ids=["t"]),
    ),
    Feature.FORGET_SESSIONS: (
        "SELECTOR_UNSUPPORTED", lambda space: space.client.forget(space.space_id, session_ids=["s"]),
    ),
    Feature.LIST_MEMORIES: ("FEATURE_UNSUPPORTED", _list),
}  # fmt: skip


async def refuses(probe: Probe, feature: Feature) -> bool:
    """Holds the server to refusing what it does not declare; false: nothing of the protocol asks for the feature."""
    space = probe.space()
    if feature is Feature.FORGET_DRY_RUN:
        return await _refuses_dry_run(probe, space)
    if feature not in _ATTEMPTS:
        return False
    reason, attempt = _ATTEMPTS[feature]
    await refused(attempt(space), reason, what=f"what needs FEATURE_{feature}, which is not declared,")
    return True


async def _refuses_dry_run(probe: Probe, space: Space) -> bool:
    for feature, selector in (
        (Feature.FORGET_TURNS, Selection(turn_ids=("t",))),
        (Feature.FORGET_SESSIONS, Selection(session_ids=("s",))),
        (Feature.FORGET_MEMORIES, Selection(memory_ids=("m",))),
    ):
        if probe.declares(feature):
            work = space.forget(selector, dry_run=True)
            await refused(work, "FEATURE_UNSUPPORTED", what="a dry run, which is not declared,")
            return True
    return False
