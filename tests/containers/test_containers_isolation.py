"""Who reaches whom, tried by connecting from every container."""

import json
import subprocess

import pytest

from containers.reaching import OUTSIDE, PORT, addresses, all_reached, somewhere_outside
from support.compose import Stack, docker

PORTS = {
    "gateway": (7450, 7451),
    "evaluator": (7480,),
    "embedder": (7460,),
    "meter": (7480,),
    "postgres": (5432,),
    "rag-dense": (7470, 7471),
    "rag-hybrid": (7470, 7471),
}
ADAPTERS = ("rag-dense", "rag-hybrid")
REACHES = {
    "gateway": {*ADAPTERS, "evaluator"},  # the two are both on the network that this machine reaches
    "evaluator": {"gateway", "embedder", "meter"},
    "embedder": {"meter"},
    "meter": {"embedder"},
    "postgres": set(),
    "rag-dense": {"postgres", "embedder", "meter"},
    "rag-hybrid": {"postgres", "embedder", "meter"},
}


@pytest.fixture(scope="module")
def found(up: Stack) -> dict[str, set[tuple[str, int]]]:
    """Container -> the services and ports that it reaches: all asked at once, since what is not reached takes time.

    By name, and by every address of others on networks that the two share: what has no name may yet be there.
    """
    targets = {source: _targets(up, source) for source in REACHES}
    reached = all_reached(up, targets)
    return {source: {(targets[source][each], each[1]) for each in reached[source]} for source in targets}


def _targets(up: Stack, source: str) -> dict[tuple[str, int], str]:
    """Host and port -> the service that is meant."""
    mine = set(addresses(up, source))
    targets: dict[tuple[str, int], str] = {}
    for service, ports in PORTS.items():
        if service == source:
            continue
        names = [service, f"{service}.system", f"{service}.front", f"{service}.models"]
        shared = [address for network, address in addresses(up, service).items() if network in mine]
        targets |= {(host, port): service for host in [*names, *shared] for port in ports}
    return targets


@pytest.mark.parametrize("source", sorted(REACHES))
def test_a_container_reaches_what_it_needs_and_nothing_else(
    found: dict[str, set[tuple[str, int]]], source: str
) -> None:
    assert found[source] == {(service, port) for service in REACHES[source] for port in PORTS[service]}


def test_internal_networks_lead_nowhere(up: Stack) -> None:
    """Not to other networks' addresses, not to this machine: from containers that are on internal networks alone."""
    targets = {}
    for source in ("embedder", "postgres", *ADAPTERS):
        mine = addresses(up, source)
        targets[source] = [
            (address, port)
            for service, ports in PORTS.items()
            for network, address in addresses(up, service).items()
            if network not in mine
            for port in ports
        ]
        assert targets[source]
        for network in mine:
            told = json.loads(docker("network", "inspect", network))[0]
            assert told["Internal"], network
            bridge = f"br-{told['Id'][:12]}"
            link = json.loads(
                subprocess.run(["ip", "-j", "-4", "addr", "show", bridge], capture_output=True, check=True).stdout
            )
            assert not [each for each in link if each.get("addr_info")], f"this machine has an address in {network}"
    assert all_reached(up, targets) == {source: set() for source in targets}


def test_this_machine_offers_the_gateway_and_the_evaluator(up: Stack) -> None:
    published = {}
    for service in up.services:
        bound = up.inspect(service)["HostConfig"]["PortBindings"] or {}
        published[service] = sorted(binding["HostIp"] + ">" + port for port, each in bound.items() for binding in each)
    offered = {service: ports for service, ports in published.items() if ports}
    assert offered == {
        "gateway": ["127.0.0.1>7450/tcp", "127.0.0.1>7451/tcp"],
        "evaluator": ["127.0.0.1>7480/tcp"],
    }


def test_the_meter_alone_gets_out(up: Stack) -> None:
    with somewhere_outside():
        out = all_reached(up, {source: [(OUTSIDE, PORT)] for source in REACHES})
    assert out == {source: {(OUTSIDE, PORT)} if source == "meter" else set() for source in REACHES}
