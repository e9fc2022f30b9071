"""Who reaches whom, tried by connecting from every container."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

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
OUTSIDE, INSIDE_ADDRESS, PORT = "198.51.100.2", "198.51.100.1", 7499
CONNECT = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def opens(target):
    try:
        socket.create_connection(target, timeout=3).close()
        return True
    except OSError:
        return False
targets = json.load(sys.stdin)
with ThreadPoolExecutor(64) as pool:
    print(json.dumps(list(pool.map(opens, map(tuple, targets)))))
"""


def reached(up: Stack, source: str, targets: list[tuple[str, int]]) -> set[tuple[str, int]]:
    """Those of the targets (host, port) that take a connection from a container."""
    python = "python3" if source == "postgres" else "/opt/memdock/bin/python"
    said = docker("exec", "-i", up.container(source), python, "-c", CONNECT, given=json.dumps(targets))
    return {target for target, opened in zip(targets, json.loads(said), strict=True) if opened}


def addresses(up: Stack, service: str) -> dict[str, str]:
    """Network -> the container's address there."""
    return {name: network["IPAddress"] for name, network in up.inspect(service)["NetworkSettings"]["Networks"].items()}


@pytest.mark.parametrize("source", sorted(REACHES))
def test_a_container_reaches_what_it_needs_and_nothing_else(up: Stack, source: str) -> None:
    """By name, and by every address of others on networks that the two share: what has no name may yet be there."""
    mine = set(addresses(up, source))
    targets: dict[tuple[str, int], str] = {}
    for service, ports in PORTS.items():
        if service == source:
            continue
        names = [service, f"{service}.system", f"{service}.front", f"{service}.models"]
        shared = [address for network, address in addresses(up, service).items() if network in mine]
        targets |= {(host, port): service for host in [*names, *shared] for port in ports}
    found = {(targets[target], target[1]) for target in reached(up, source, list(targets))}
    assert found == {(service, port) for service in REACHES[source] for port in PORTS[service]}


def test_internal_networks_lead_nowhere(up: Stack) -> None:
    """Not to other networks' addresses, not to this machine: from containers that are on internal networks alone."""
    for source in ("embedder", "postgres", *ADAPTERS):
        mine = addresses(up, source)
        targets = [
            (address, port)
            for service, ports in PORTS.items()
            for network, address in addresses(up, service).items()
            if network not in mine
            for port in ports
        ]
        assert targets
        assert not reached(up, source, targets), source
        for network in mine:
            found = json.loads(docker("network", "inspect", network))[0]
            assert found["Internal"], network
            bridge = f"br-{found['Id'][:12]}"
            link = json.loads(
                subprocess.run(["ip", "-j", "-4", "addr", "show", bridge], capture_output=True, check=True).stdout
            )
            assert not [each for each in link if each.get("addr_info")], f"this machine has an address in {network}"


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


@contextmanager
def somewhere_outside() -> Iterator[None]:
    """A host of our own behind this machine, which listens: a network namespace at the other end of a cable."""
    name = "memdock-out"

    def run(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True)

    listen = (
        f"import socket\ns = socket.create_server(('{OUTSIDE}', {PORT}))\n"
        "print('ready', flush=True)\nwhile True: s.accept()[0].close()"
    )
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "addr", "add", f"{INSIDE_ADDRESS}/30", "dev", name)
        run("ip", "link", "set", name, "up")
        run("ip", "-n", name, "addr", "add", f"{OUTSIDE}/30", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        with subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-c", listen], stdout=subprocess.PIPE
        ) as listening:
            assert listening.stdout is not None
            assert listening.stdout.readline() == b"ready\n"
            try:
                yield
            finally:
                listening.kill()
    finally:
        run("ip", "netns", "delete", name)
        with suppress(subprocess.CalledProcessError):  # it is gone with the namespace, as a rule
            run("ip", "link", "delete", name)


def test_the_meter_alone_gets_out(up: Stack) -> None:
    with somewhere_outside():
        out = {source: bool(reached(up, source, [(OUTSIDE, PORT)])) for source in REACHES}
    assert out == {source: source == "meter" for source in REACHES}
