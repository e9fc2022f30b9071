"""Every other adapter in its container, by its profile: behind the gateway, on models and services that are scripted.

`make test-containers-adapters` makes the images of those that the variable ADAPTERS names, and runs this.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from containers.checks import check_bounds, check_image
from containers.reaching import OUTSIDE, PORT, addresses, reached, somewhere_outside
from containers.test_containers_faults import kill
from memdock import Client, connect
from support.adapters import ADAPTERS, ROOT, Adapter, fill, space, turn
from support.compose import Stack, docker, stack
from support.hosted_service import Service
from support.model_server import ModelServer
from support.model_thread import in_thread, models_in_thread
from support.words import embed_words

CHOSEN = [each for each in ADAPTERS if each.name in os.environ.get("ADAPTERS", "").split()]
STORES = {"mem0": "mem0-postgres", "memos": "memos-postgres"}
ANYWHERE = "0.0.0.0"
VECTOR = 384

pytestmark = pytest.mark.skipif(not CHOSEN, reason="run by `make test-containers-adapters`, which makes the images")


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack with all chosen adapters, each with a model server or a fake of its service of its own."""
    folder = tmp_path_factory.mktemp("adapters")
    settings = {"COMPOSE_FILE": os.pathsep.join(["docker-compose.yml", "tests/containers/scripted.yml"])}
    meter = yaml.safe_load((ROOT / "containers/meter.yaml").read_text())
    with ExitStack() as ends:
        for each in CHOSEN:
            host = "127.0.0.1" if each.service is not None else ANYWHERE
            models = ends.enter_context(models_in_thread(ModelServer(chat=each.chat, embed=_padded), host))
            if each.service is None:
                meter["upstreams"][each.name] = {"url": _seen_from_containers(models.url)}
                meter["systems"][each.name]["chat"] = each.name
            else:
                settings |= ends.enter_context(_faked(each.service(), each.name, models.url, folder))
        if (
            "mem0g" in meter["upstreams"]
        ):  # it takes names for one that are as near as all words are to the bundled model
            meter["systems"]["mem0g"]["embeddings"] = "mem0g"
        settings["METER_CONFIG"] = str(folder / "meter.yaml")
        (folder / "meter.yaml").write_text(yaml.safe_dump(meter))
        profiles = ["meter", *(each.name for each in CHOSEN)]
        yield ends.enter_context(stack(f"memdock-adapters-{os.getpid()}", profiles, None, settings))


@pytest.fixture(params=CHOSEN, ids=str)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Each of those that are chosen."""
    chosen: Adapter = request.param
    return chosen


@contextmanager
def _faked(service: Service, name: str, models: str, folder: Path) -> Iterator[dict[str, str]]:
    """A fake that containers reach; the settings that lead an adapter there."""
    service.model_url = models
    key = folder / f"{name}.key"
    key.write_text(service.key)
    key.chmod(0o444)
    with in_thread(lambda: service.serving(f"{ANYWHERE}:0"), name):
        prefix = name.upper().replace("-", "_")
        url = _seen_from_containers(service.url) + service.base
        yield {f"{prefix}_URL": url, f"{prefix}_KEY_FILE": str(key)}
    assert not service.refused, service.refused


def _padded(text: str) -> list[float]:
    words = embed_words(text)
    return words + [0.0] * (VECTOR - len(words))


def _seen_from_containers(url: str) -> str:
    return url.replace(f"//{ANYWHERE}:", "//provider:")


def client_of(up: Stack, system: str) -> Client:
    """A client of the gateway's published port."""
    key = docker("exec", up.container("gateway"), "cat", "/keys/first.key")
    url = f"grpc://127.0.0.1:{up.environment['GATEWAY_GRPC_PORT']}"
    return connect(url, key=key, system=system, timeout_s=60)


def test_what_is_stored_outlives_the_adapter_and_is_forgotten(behind: Stack, adapter: Adapter) -> None:
    name = space()
    with client_of(behind, adapter.name) as client:
        fill(client, name, turn("t1", "persimmon is the name of my cat"), turn("t2", "my brother lives in Kazan", "s2"))
        assert any("persimmon" in each.text for each in client.retrieve(name, "persimmon cat").memories)
        restarts = behind.inspect(adapter.name)["RestartCount"]
        kill(behind, adapter.name)
        behind.await_restart(adapter.name, restarts)
        behind.await_healthy(adapter.name)
        assert any("persimmon" in each.text for each in client.retrieve(name, "persimmon cat").memories)
        client.forget(name, turn_ids=["t1"])
        assert not any("persimmon" in each.text for each in client.retrieve(name, "persimmon cat").memories)
        client.reset(name)
    used = behind.must("exec", "-T", "meter", "memdock-meter", "usage", "--system", adapter.name)
    assert bool(used.strip()) is (adapter.service is None)


def test_its_container_and_its_image_are_as_all(behind: Stack, adapter: Adapter, figure: Callable[[str], None]) -> None:
    check_bounds(behind, adapter.name)
    figure(f"{adapter.name}: {check_image(behind, adapter.name)} MB beside the base")


def test_it_reaches_its_store_its_models_or_its_service_and_nothing_else(behind: Stack, adapter: Adapter) -> None:
    mine = set(addresses(behind, adapter.name))
    ports = (5432, 7450, 7451, 7460, 7470, 7471, 7480)
    others = {
        (address, port): service
        for service in behind.services
        if service != adapter.name
        for network, address in addresses(behind, service).items()
        for port in ports
        # By a way out, what no network here has may be answered by whatever is outside.
        if network in mine or adapter.service is None
    }
    found = {others[target] for target in reached(behind, adapter.name, list(others))}
    allowed = {"embedder", "meter"} | ({STORES[adapter.name]} if adapter.name in STORES else set())
    assert found == (allowed if adapter.service is None else set())
    with somewhere_outside():
        out = bool(reached(behind, adapter.name, [(OUTSIDE, PORT)]))
    assert out is (adapter.service is not None)
