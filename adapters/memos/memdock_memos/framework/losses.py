"""What MemOS goes on without: it logs its failures and answers with less, so its log is read here, and kept nowhere."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memdock.errors import MemdockError, error

# A batch that could not be embedded is tried again text by text, and each that fails then is logged for itself.
_MENDED = ("[MultiModalStruct] Error batch computing embeddings",)
_lost: ContextVar[list[MemdockError] | None] = ContextVar("memdock_memos_lost", default=None)


class Losses(logging.Handler):
    """An error in its log is a failure of the call that it was in; no text of the log goes anywhere."""

    def emit(self, record: logging.LogRecord) -> None:
        if not str(record.msg).startswith(_MENDED):
            place = f"{record.name}, line {record.lineno}"
            lose(error("INTERNAL", f"MemOS went on without a part of what it was given ({place})."))


def lose(failure: MemdockError) -> MemdockError:
    """Notes a failure that the framework will swallow; gives it back, to be raised."""
    lost = _lost.get()
    if lost is not None:
        lost.append(failure)
    return failure


@contextmanager
def no_losses() -> Iterator[None]:
    """Raises the first failure that the framework swallowed inside the block, also where it raised another one then."""
    lost: list[MemdockError] = []
    token = _lost.set(lost)
    try:
        yield
    except Exception:
        if lost:
            raise lost[0] from None
        raise
    finally:
        _lost.reset(token)
    if lost:
        raise lost[0]
