"""One stack for all tests of containers, and the same evaluation without containers to hold it against."""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from support.compose import Stack, stack

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is here needs an engine and images, which `make test-containers` sees to."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.containers)
            item.add_marker(pytest.mark.timeout(420))
            if not os.environ.get("CONTAINERS"):
                item.add_marker(pytest.mark.skip(reason="run by `make test-containers`, which makes the images"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The evaluation of the bundled data on this machine: its rows, and the embeddings that it made."""

    rows: bytes
    embeddings: Path

    def of_systems(self, language: str, dialogues: Collection[str]) -> list[bytes]:
        """The rows of the memory systems in a language and these dialogues."""
        rows = ((row, orjson.loads(row)) for row in self.rows.splitlines())
        return [
            row
            for row, told in rows
            if (told["language"], told["dialogue_id"]) in {(language, each) for each in dialogues}
            and told["system"].startswith("rag-")
        ]


@pytest.fixture(scope="session")
def outside() -> Outside:
    """The same run without a container, as a user types it: `run.sh` makes it while images are built."""
    made = Path(os.environ["CONTAINERS"])
    return Outside(rows=(made / "run" / "outcomes.jsonl").read_bytes(), embeddings=made / "embeddings.sqlite")


FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Tells a figure at the end of all tests; it is no test itself."""
    return request.config.stash.setdefault(FIGURES, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was measured by the way."""
    for line in config.stash.get(FIGURES, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def up(outside: Outside) -> Iterator[Stack]:
    """The core stack with the meter."""
    with stack(f"memdock-test-{os.getpid()}", ["meter"], outside.embeddings) as running:
        yield running
