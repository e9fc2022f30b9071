"""Which call a URL means. Paths are matched as they were sent, before percent-decoding: `a%2Fb` is one segment."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from memdock.errors import NotFoundError, VerbError
from memdock.findings import refuse
from memdock.service import METHODS, Method

NO_SYSTEM = "-"
"""The system segment on the adapter's hop, where a lone server needs no name."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path of the binding and its calls by verb."""

    segments: tuple[str, ...]
    methods: Mapping[str, Method]

    def capture(self, raw: list[str]) -> dict[str, str] | None:
        """The raw segments by field, or `None` when the path is another one."""
        if len(raw) != len(self.segments):
            return None
        captured = {}
        for segment, given in zip(self.segments, raw, strict=True):
            if segment.startswith("{"):
                captured[segment[1:-1]] = given
            elif segment != given:
                return None
        return captured if all(captured.values()) else None


def _routes() -> tuple[Route, ...]:
    by_path: dict[str, dict[str, Method]] = {}
    for method in METHODS.values():
        by_path.setdefault(method.path, {})[method.verb] = method
    return tuple(Route(tuple(path.split("/")), methods) for path, methods in by_path.items())


ROUTES = _routes()


def find_method(verb: str, raw_path: str) -> tuple[Method, dict[str, str]]:
    """The call and its path's fields, decoded. Raises PATH_NOT_FOUND, VERB_NOT_ALLOWED or VALIDATION_FAILED."""
    raw = raw_path.split("/")
    for route in ROUTES:
        captured = route.capture(raw)
        if captured is None:
            continue
        method = route.methods.get(verb)
        if method is None:
            raise wrong_verb(*route.methods)
        return method, {name: _decode(name, segment) for name, segment in captured.items()}
    raise NotFoundError("PATH_NOT_FOUND", "there is no such path; the calls stand under /v1/systems")


def wrong_verb(*allow: str) -> VerbError:
    """The error for a known path with another verb."""
    return VerbError(f"this path takes {' or '.join(sorted(allow))}", sorted(allow))


def _decode(name: str, segment: str) -> str:
    if name == "system" and segment == NO_SYSTEM:
        return ""
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise refuse("VALIDATION_FAILED", name, "is not UTF-8 in the path") from None
