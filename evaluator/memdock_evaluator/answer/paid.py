"""Which replies of a cache a run has paid for: a kill between a reply and its part must not make the reply free."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_keys: ContextVar[list[str] | None] = ContextVar("memdock_evaluator_paid", default=None)


@contextmanager
def paid_replies() -> Iterator[list[str]]:
    """The cache's keys, in hexadecimal digits, of the replies inside the block that the bill has the money of."""
    keys: list[str] = []
    token = _keys.set(keys)
    try:
        yield keys
    finally:
        _keys.reset(token)


def note_paid(key: str) -> None:
    """Tells whoever gathers them of a reply; nobody need do so."""
    if (keys := _keys.get()) is not None:
        keys.append(key)
