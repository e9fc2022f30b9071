"""Connecting from containers: to what is on their networks, and to a host outside."""

import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from support.compose import PYTHON, Stack, docker

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
    python = "python3" if source == "postgres" else PYTHON
    # A name that nobody has is asked for outside, where an internal network leads nowhere.
    said = docker(
        "exec",
        "-i",
        "-e",
        "RES_OPTIONS=timeout:2 attempts:1",
        up.container(source),
        python,
        "-c",
        CONNECT,
        given=json.dumps(targets),
    )
    return {target for target, opened in zip(targets, json.loads(said), strict=True) if opened}


def all_reached(up: Stack, targets: Mapping[str, Collection[tuple[str, int]]]) -> dict[str, set[tuple[str, int]]]:
    """The same from several containers at once, each with its own targets."""
    with ThreadPoolExecutor(len(targets)) as pool:
        found = pool.map(lambda source: reached(up, source, list(targets[source])), targets)
        return dict(zip(targets, found, strict=True))


def addresses(up: Stack, service: str) -> dict[str, str]:
    """Network -> the container's address there."""
    return {name: network["IPAddress"] for name, network in up.inspect(service)["NetworkSettings"]["Networks"].items()}


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
