"""One stack of processes for all tests of this folder; whoever kills a part of it starts it again."""

from collections.abc import Iterator

import pytest

from support.whole_stack import WholeStack, whole_stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeStack]:
    """A scripted model, rag-hybrid and rag-dense on one PostgreSQL, and the gateway before them."""
    with whole_stack(tmp_path_factory.mktemp("stack")) as running:
        yield running
