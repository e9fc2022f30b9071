"""A gateway in the test's own process, over adapters at given addresses, with the keys that the test asks for."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from memdock.client import ConnectedClient, connect_async
from memdock.key_file import editing
from memdock.keys import ANY, create_key, utc_now
from memdock_gateway.config_file import load_config
from memdock_gateway.server import Gateway
from memdock_gateway.space_key import new_space_key, write_space_keys

ANYTHING: Mapping[str, Any] = {"tenant": "acme", "systems": [ANY], "spaces": [ANY], "calls": [ANY]}


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """Where it is, what its keys are by the test's names for them, and the folder of its files."""

    grpc_port: int
    http_port: int
    keys: Mapping[str, str]
    folder: Path

    def url(self, scheme: str) -> str:
        """The address of a face."""
        return f"{scheme}://127.0.0.1:{self.grpc_port if scheme == 'grpc' else self.http_port}"

    def client(self, scheme: str, system: str, *, key: str = "all", **options: Any) -> ConnectedClient:
        """A client of one system with one of the keys."""
        return connect_async(self.url(scheme), system=system, key=self.keys[key], **options)


def write_gateway(
    folder: Path, systems: list[dict[str, Any]], *, keys: Mapping[str, Mapping[str, Any]] | None = None, **more: Any
) -> tuple[Path, dict[str, str]]:
    """Writes a gateway's files; gives the configuration's path and the credentials by name (`all` may do anything).

    `more` is put into the configuration as it is.
    """
    credentials = {"all": make_key(folder, **ANYTHING)}
    for name, bindings in (keys or {}).items():
        credentials[name] = make_key(folder, **{**ANYTHING, **bindings})
    space_key = new_space_key(1)
    write_space_keys(folder / "space-keys.yaml", {1: space_key})
    config = {
        "listen": {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0"},
        "keys_file": "keys.json",
        "space_key": {"file": "space-keys.yaml", "fingerprints": {1: space_key.fingerprint}},
        "audit_file": "audit.jsonl",
        "drain_s": 5,
        "systems": systems,
    } | more
    path = folder / "gateway.yaml"
    path.write_text(yaml.safe_dump(config))
    return path, credentials


def make_key(folder: Path, *, lifetime_s: float | None = None, **bindings: Any) -> str:
    """Adds a key to the folder's file; gives the credential. A negative lifetime is over already."""
    lifetime = None if lifetime_s is None else timedelta(seconds=lifetime_s)
    key, credential = create_key(now=utc_now(), lifetime=lifetime, **bindings)
    with editing(folder / "keys.json") as file:
        file.keys[key.key_id] = key
    return credential


@asynccontextmanager
async def gateway_over(folder: Path, systems: list[dict[str, Any]], **options: Any) -> AsyncIterator[RunningGateway]:
    """A running gateway; `options` as for `write_gateway`."""
    path, keys = write_gateway(folder, systems, **options)
    async with Gateway(load_config(path)) as gateway:
        yield RunningGateway(gateway.ports["grpc"], gateway.ports["http"], keys, folder)
