"""Answers compared: what one face reads or refuses, the other must read or refuse as well."""

import json
from typing import Any

from memdock.conformance.case import CheckFailedError
from memdock.conformance.faces import Face
from memdock.errors import MemdockError
from memdock.service import Call, Method
from memdock.wire import to_json

READS = frozenset({"Describe", "Retrieve", "ListTurns", "ListMemories"})
_REFUSED_CODES = (3, 5, 6, 12)
"""Refusals that stand whatever happens meanwhile: asking again on the other face changes nothing."""


class Mirrored:
    """A `Service`: each call goes to `face`, and what can be asked twice is asked on `other` too and compared.

    Answers that differ are looked at once more, so that a space on which work goes on is no difference of faces.
    """

    def __init__(self, face: Face, other: Face) -> None:
        self._face = face
        self._other = other

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """The answer of the first face; `CheckFailedError` when the other one gives another."""
        kept = request.SerializeToString()
        try:
            answer = await self._face.call(method, request, call)
        except MemdockError as error:
            if error.code in _REFUSED_CODES:
                await self._refuses_too(method, method.request.FromString(kept), call, error)
            raise
        if method.name in READS:
            await self._same(method, kept, call, answer)
        return answer

    async def _same(self, method: Method, kept: bytes, call: Call, answer: Any) -> None:
        first = normal(answer)
        for _ in range(3):
            second = normal(await self._other.call(method, method.request.FromString(kept), call))
            if first == second:
                return
            again = normal(await self._face.call(method, method.request.FromString(kept), call))
            if first == again:
                raise CheckFailedError(
                    f"{method.name} answers differently over {self._face.name} and {self._other.name}: "
                    f"{_difference(first, second)}"
                )
            first = again

    async def _refuses_too(self, method: Method, request: Any, call: Call, error: MemdockError) -> None:
        try:
            await self._other.call(method, request, call)
        except MemdockError as other:
            same = (error.reason, [item.field for item in error.fields]) == (
                other.reason,
                [item.field for item in other.fields],
            )
            if same:
                return
            raise CheckFailedError(
                f"{method.name} is refused with {error.reason} over {self._face.name} and with {other.reason} over"
                f" {self._other.name}, or for other fields"
            ) from None
        raise CheckFailedError(f"{method.name} is refused over {self._face.name} and taken over {self._other.name}")


def normal(answer: Any) -> Any:
    """The answer as JSON, without what may differ between two equal calls: cost, timing, the last digits of scores."""
    copy = type(answer)()
    copy.CopyFrom(answer)
    for name in ("usage", "space_usage", "timing"):
        if name in copy.DESCRIPTOR.fields_by_name:
            copy.ClearField(name)
    if "next_page_token" in copy.DESCRIPTOR.fields_by_name:
        copy.next_page_token = "more" if copy.next_page_token else ""
    for memory in getattr(copy, "memories", ()):
        if memory.HasField("score"):
            memory.score = float(f"{memory.score:.6g}")
    return json.loads(to_json(copy))


def _difference(first: Any, second: Any) -> str:
    """Where two answers part, without their texts."""
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    sizes = [f"{name} ({_size(first.get(name))} and {_size(second.get(name))})" for name in names]
    return ", ".join(sizes)


def _size(value: Any) -> str:
    return f"{len(value)} entries" if isinstance(value, list) else str(value)
