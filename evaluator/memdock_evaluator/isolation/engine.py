"""What a container engine tells of the containers that systems run in. Everything here only reads."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from memdock_evaluator.results.manifest import ContainerFacts
from memdock_evaluator.run.settings import SettingsError

LABEL = "memdock.system"
"""A container's label that names the systems it is part of, with commas between; docker-compose.yml sets it."""

_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a container has taken: memory now, processor time since it was started."""

    memory_bytes: int
    cpu_s: float


class EngineError(Exception):
    """The engine does not answer, or no longer knows the container."""


class Engine:
    """A Docker engine at `address`, such as unix:///var/run/docker.sock, or tcp://host:2375 of a proxy that only reads.

    Raises `SettingsError` where it cannot be asked.
    """

    def __init__(self, address: str) -> None:
        try:
            import docker
            from docker.errors import DockerException
            from requests.exceptions import RequestException
        except ImportError:
            raise SettingsError("--docker needs memdock-evaluator[docker], which is not installed") from None
        self._faults = (DockerException, RequestException)
        try:
            self._client = docker.DockerClient(base_url=address, version="auto", timeout=_TIMEOUT_S)
            self.name = f"Docker {self._client.version()['Version']}"
        except (*self._faults, ValueError, KeyError) as fault:
            raise SettingsError(f"--docker {address}: no engine answers there ({_first_line(fault)})") from None

    @staticmethod
    def check(address: str) -> None:
        """Raises `SettingsError` where it cannot be asked."""
        Engine(address).close()

    def close(self) -> None:
        """Ends its connections."""
        self._client.close()

    def containers(self, systems: Collection[str]) -> dict[str, ContainerFacts]:
        """Id -> what it is allowed, of each running container that is part of one of the systems."""
        found = {}
        for container in self._asked(lambda: self._client.containers.list(filters={"label": LABEL})):
            parts = {name.strip() for name in container.labels[LABEL].split(",")}
            if parts & set(systems):
                image = self._asked(lambda image=container.attrs["Image"]: self._client.images.get(image))
                found[str(container.id)] = _facts(container.attrs, image.attrs, ", ".join(sorted(parts)))
        return found

    def restarts(self, container_id: str) -> int:
        """How often the engine has started the container again, since it was made."""
        return int(self._asked(lambda: self._client.api.inspect_container(container_id))["RestartCount"])

    def read(self, container_id: str) -> Reading:
        """What it takes now."""
        told = self._asked(lambda: self._client.api.stats(container_id, stream=False, one_shot=True))
        memory = told.get("memory_stats", {})
        details = memory.get("stats", {})
        # Files that were read and could be dropped at once are no need of the container's; `docker stats` counts alike.
        idle = details.get("total_inactive_file", details.get("inactive_file", 0))
        cpu_ns = told.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage", 0)
        return Reading(memory_bytes=max(0, memory.get("usage", 0) - idle), cpu_s=cpu_ns / 1e9)

    def _asked(self, ask: Any) -> Any:
        try:
            return ask()
        except self._faults as fault:
            raise EngineError(_first_line(fault)) from fault


def _facts(container: Mapping[str, Any], image: Mapping[str, Any], system: str) -> ContainerFacts:
    host = container["HostConfig"]
    return ContainerFacts(
        system=system,
        container=str(container["Name"]).lstrip("/"),
        image=container["Config"]["Image"],
        digest=container["Image"],
        published_digests=tuple(sorted(image.get("RepoDigests") or ())),
        memory_limit_bytes=host.get("Memory") or None,
        cpu_limit=(host.get("NanoCpus") or 0) / 1e9 or None,
        pids_limit=host.get("PidsLimit") or None,
        user=container["Config"].get("User") or "root",
        read_only=bool(host.get("ReadonlyRootfs")),
        privileged=bool(host.get("Privileged")),
        capabilities_dropped=tuple(host.get("CapDrop") or ()),
        networks=tuple(sorted(container["NetworkSettings"]["Networks"])),
        peak_memory_bytes=0,
        cpu_s=0.0,
    )


def _first_line(fault: Exception) -> str:
    return next(iter(str(fault).splitlines()), type(fault).__name__)
