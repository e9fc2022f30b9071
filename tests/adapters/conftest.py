"""Every test here needs the environment of a framework: `make test-adapters` runs them, `make test` does not."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.adapters import ADAPTERS, Adapter, RunningAdapter, running
from support.model_server import ModelServer
from support.model_thread import models_in_thread

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.adapters)
            item.add_marker(pytest.mark.timeout(600))
            # What shares an adapter's process stays together; several processes of pytest take the adapters apart.
            adapter = item.callspec.params.get("adapter", "") if hasattr(item, "callspec") else ""
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {adapter}"))


def _wanted() -> list[Adapter]:
    names = os.environ.get("ADAPTERS", "").split()
    return [each for each in ADAPTERS if not names or each.name in names]


@pytest.fixture(scope="module", params=_wanted(), ids=str)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Each adapter, or those that the variable ADAPTERS names."""
    chosen: Adapter = request.param
    return chosen


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with models_in_thread(ModelServer()) as server:
        yield server


@pytest.fixture(scope="module")
def served(adapter: Adapter, models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAdapter]:
    """The adapter, started once for a module."""
    with running(adapter, tmp_path_factory.mktemp(adapter.name), models) as started:
        yield started


@pytest.fixture(autouse=True)
def _clean(models: ModelServer) -> None:
    models.faults.clear()
    models.requests.clear()
