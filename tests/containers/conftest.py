"""One stack for all tests of containers, and the same evaluation without containers to hold it against."""

import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from support.compose import ROOT, Stack, stack
from support.processes import run_command

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
def outside(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    """The same run without a container, as a user types it."""
    out = tmp_path_factory.mktemp("outside")
    work = ROOT / ".memdock"  # with the embeddings of an earlier `make demo`, where there was one
    done = run_command("memdock-eval", "demo", "--out", out / "run", "--work", work, timeout_s=400)
    assert done.code == 0, done.words
    shutil.copy2(work / "embeddings.sqlite", out)
    return Outside(rows=(out / "run" / "outcomes.jsonl").read_bytes(), embeddings=out / "embeddings.sqlite")


@pytest.fixture(scope="session")
def up(outside: Outside) -> Iterator[Stack]:
    """The core stack with the meter."""
    with stack(f"memdock-test-{os.getpid()}", ["meter"], outside.embeddings) as running:
        yield running
