"""The gateway with one fault: `python -m support.gateway_mutants FAULT ...`, then as `memdock-gateway`."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from memdock import callers, face, face_grpc, face_http
from memdock.service import Call
from memdock_gateway import cli, lanes, router, space_key, upstream


def admits_everybody() -> None:
    """Asks nobody who he is."""
    callers.KeyFileCallers.identify = callers.Anybody.identify  # type: ignore[assignment, method-assign]


def starts_without_keys() -> None:
    """Asks for no safety."""
    cli.require_safe = lambda *_, **__: None  # type: ignore[attr-defined]


def shows_the_callers_names() -> None:
    """Names spaces at the systems as callers do."""
    space_key.SpaceNames.name = lambda self, tenant, space_id: space_id  # type: ignore[method-assign]


def believes_headers() -> None:
    """Takes what a header says of the user for the name of the call, which goes on to the system."""

    def read(headers: Mapping[str, str], left_s: float | None) -> Call:
        call = face.read_call(headers, left_s)
        return replace(call, request_id=headers.get("x-user-name", call.request_id))

    face_grpc.read_call = read  # type: ignore[attr-defined]
    face_http.read_call = read  # type: ignore[attr-defined]


def tries_everything_again() -> None:
    """Any error is worth two more tries."""
    upstream.pause_s = lambda problem, retries, left_s: 0.01 if retries < 2 else None  # type: ignore[attr-defined]


def has_no_lanes() -> None:
    """Lets any number of calls into a system."""
    lanes.Lane.try_enter = lambda self: True  # type: ignore[method-assign]


def logs_what_is_asked() -> None:
    """Writes queries and spaces into its log."""
    sound = router.Router.call

    async def call(self: Any, method: Any, request: Any, *more: Any) -> Any:
        structlog.get_logger().info("asked", request=str(request))
        return await sound(self, method, request, *more)

    router.Router.call = call  # type: ignore[assignment, method-assign]


def passes_everything_on() -> None:
    """Looks at no answer."""
    upstream.check_answer = lambda *_: None  # type: ignore[attr-defined]


def loses_the_last_memory() -> None:
    """Cuts the last memory off an answer."""
    sound = router.Router.call

    async def call(self: Any, method: Any, request: Any, *more: Any) -> Any:
        answer = await sound(self, method, request, *more)
        if getattr(answer, "memories", ()):
            del answer.memories[-1]
        return answer

    router.Router.call = call  # type: ignore[assignment, method-assign]


FAULTS: dict[str, tuple[Callable[[], None], str]] = {
    fault.__name__: (fault, case_id)
    for fault, case_id in (
        (admits_everybody, "G1"),
        (shows_the_callers_names, "G1"),
        (starts_without_keys, "G2"),
        (believes_headers, "G3"),
        (tries_everything_again, "G4"),
        (has_no_lanes, "G5"),
        (logs_what_is_asked, "G6"),
        (passes_everything_on, "G7"),
        (loses_the_last_memory, "G8"),
    )
}
"""By name: the fault, and the case that must tell it."""


if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)][0]()
    cli.main()
