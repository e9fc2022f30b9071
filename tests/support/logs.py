"""What a process logs, read back."""

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import structlog

from memdock.log import set_up_logs


@contextmanager
def logged() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Gives the lines so far; afterwards logs go where they went before."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    file = io.BytesIO()
    set_up_logs(file)
    try:
        yield lambda: [orjson.loads(line) for line in file.getvalue().splitlines()]
    finally:
        structlog.configure(**before)
        root.handlers, root.level = handlers, level
