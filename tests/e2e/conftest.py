"""One stack of processes for all tests of this folder; whoever kills a part of it starts it again."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.whole_stack import WholeStack, whole_stack


@pytest.fixture(scope="session")
def stack() -> Iterator[WholeStack]:
    """A scripted model, rag-hybrid and rag-dense on one PostgreSQL, and the gateway before them.

    Not in a folder of pytest's: another pytest of the same user closes those to others whenever it starts, and as root
    the embedded PostgreSQL is another user.
    """
    with (
        tempfile.TemporaryDirectory(prefix="memdock-e2e-") as folder,
        whole_stack(Path(folder)) as running,
    ):
        yield running
