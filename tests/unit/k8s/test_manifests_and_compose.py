"""The manifests of `k8s/` beside docker-compose.yml: the same images and bounds, and no way that Compose has not."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from memdock.face_http import PAGES
from memdock.server import ServeOptions
from memdock_evaluator.service.carrier import STOP_S
from memdock_gateway.config import Config
from memdock_gateway.gate import GOODBYE_S
from memdock_gateway.server import GRPC_GOODBYE_S
from support.deployment import compose_file
from support.manifests import TARGETS, Pod, in_cluster, pods, reachable, rendered

NAMES = {"evaluation": "evaluator", "nightly": "evaluator", "embedder-en": "qwen3-embedding"}
"""What is called otherwise in docker-compose.yml."""
DRAIN_S: Mapping[str, Callable[[], float]] = {
    "gateway": lambda: Config.model_fields["drain_s"].default + GOODBYE_S + GRPC_GOODBYE_S,
    "evaluator": lambda: STOP_S,
    "adapter": lambda: ServeOptions().drain_s,
}
"""How long a program that was told to end may take."""

on_targets = pytest.mark.parametrize("target", TARGETS)


def service_of(pod: Pod) -> Mapping[str, Any]:
    found: Mapping[str, Any] = compose_file()["services"][NAMES.get(pod.name, pod.name)]
    return found


def mebibytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)(m|g|Mi|Gi)", text)
    assert found, text
    return int(found[1]) * (1024 if found[2][0].lower() == "g" else 1)


def seconds(text: str) -> int:
    assert text.endswith("s")
    return int(text[:-1])


def own_seconds(pod: Pod) -> float:
    kind = "adapter" if pod.labels.get("memdock.dev/role") in ("adapter", "hosted") else pod.name
    return DRAIN_S[kind]() if kind in DRAIN_S else 0.0


@on_targets
def test_images_are_those_that_compose_builds_or_pulls(target: str) -> None:
    known = {service["image"] for service in compose_file()["services"].values()}
    for pod in pods(rendered(target)):
        for container in pod.containers:
            assert container["image"].removeprefix("registry.example/") in known, pod.name


@pytest.mark.parametrize("target", ["overlays/local", "frameworks", "hosted"])
def test_memory_is_bounded_alike(target: str) -> None:
    for pod in pods(rendered(target)):
        (main,) = pod.spec["containers"]
        assert mebibytes(main["resources"]["limits"]["memory"]) == mebibytes(service_of(pod)["mem_limit"]), pod.name


@on_targets
def test_every_container_has_a_folder_for_what_is_passing(target: str) -> None:
    """As Compose gives each of them: a program that writes there is not to fail in the cluster alone."""
    for pod in pods(rendered(target)):
        volumes = {volume["name"]: volume for volume in pod.spec["volumes"]}
        for container in pod.containers:
            (tmp,) = [each["name"] for each in container["volumeMounts"] if each["mountPath"] == "/tmp"]
            assert "emptyDir" in volumes[tmp], pod.name
    assert all(
        any(each.startswith("/tmp") for each in service["tmpfs"]) for service in compose_file()["services"].values()
    )


@on_targets
def test_who_is_told_to_end_gets_the_time_that_the_program_takes(target: str) -> None:
    for pod in pods(rendered(target)):
        if pod.owner["kind"] in ("Job", "CronJob"):
            continue
        (main,) = pod.spec["containers"]
        before = main.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        given = pod.spec.get("terminationGracePeriodSeconds", 30)
        assert given >= before + own_seconds(pod) + 5, pod.name


def test_compose_gives_the_same_time() -> None:
    for pod in pods(rendered("overlays/local") + rendered("frameworks") + rendered("hosted")):
        if own := own_seconds(pod):
            assert seconds(service_of(pod)["stop_grace_period"]) >= own + 3, pod.name


@on_targets
def test_the_gateway_is_forgotten_before_it_refuses(target: str) -> None:
    for pod in pods(rendered(target)):
        if pod.name == "gateway":
            assert pod.spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] >= 5


@on_targets
def test_probes_ask_for_pages_that_there_are(target: str) -> None:
    for pod in pods(rendered(target)):
        for container in pod.containers:
            asked = {
                container[each]["httpGet"]["path"]
                for each in container
                if each.endswith("Probe") and "httpGet" in container[each]
            }
            assert asked <= (set(PAGES) if "memdock/" in container["image"] else {"/health"}), pod.name


@on_targets
def test_no_way_is_open_that_compose_has_not(target: str) -> None:
    """Two that reach each other share a network there."""
    services = compose_file()["services"]

    def networks(name: str) -> set[str]:
        return set(services[NAMES.get(name, name)]["networks"])

    for source, to, _ in reachable(in_cluster(target)):
        assert networks(source) & networks(to), f"{source} reaches {to}"
