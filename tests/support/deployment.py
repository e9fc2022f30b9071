"""What deployments say of the parts, and what the programs know: to be held against each other without an engine.

A deployment is read into `Part`s, whatever it is written in; the checks are the same for all.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import yaml

from memdock.adapter.command import adapter_command
from memdock.adapter.hosted import hosted_command
from memdock.secret_option import SecretOption
from support.manifests import pods, rendered

ROOT = Path(__file__).parents[2]
IMAGE = re.compile(r"memdock/(?P<name>[a-z0-9-]+?)(?:-sentence)?(?::(?P<version>.+))?")
HOSTED = ("zep-cloud", "mem0-hosted")
"""The adapters whose memory is a service: they ask no models, and have a way out to it."""
COMMANDS = {
    "gateway": "memdock_gateway.cli",
    "evaluator": "memdock_evaluator.cli",
    "embedder": "memdock_embedder.cli",
    "meter": "memdock_meter.cli",
    "adapter-pgvector": "memdock_pgvector.cli",
}
PORTS = {
    "gateway": {7450, 7451},
    "evaluator": {7480},
    "embedder": {7460},
    "meter": {7480},
    "adapter": {7470, 7471},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A container of ours in a deployment. `image`: its name without "memdock/"; `ports`: what it says of its own."""

    name: str
    image: str
    version: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()

    @property
    def own_ports(self) -> set[int]:
        """Those that its program has by default, or its README names."""
        return PORTS["adapter" if self.image.startswith("adapter-") else self.image]


def filled(text: str) -> str:
    """Compose's text with the defaults of its variables in their place."""
    return re.sub(r"\$\{[A-Z0-9_]+(?::-([^}]*))?\}", lambda match: match[1] or "", text)


def compose_file() -> dict[str, Any]:
    """docker-compose.yml with defaults in place of its variables."""
    found: dict[str, Any] = yaml.safe_load(filled((ROOT / "docker-compose.yml").read_text()))
    return found


def parts_of_compose() -> Iterator[Part]:
    """The containers of ours in docker-compose.yml that run their image's command."""
    for name, service in compose_file()["services"].items():
        image = IMAGE.fullmatch(service["image"])
        if image is None or "entrypoint" in service:
            continue
        environment = {key: str(value) for key, value in service.get("environment", {}).items()}
        said = [*re.findall(r":(\d{4,5})\b", " ".join(_own_addresses(environment)))]
        published = [str(port).rpartition(":")[2] for port in service.get("ports", [])]
        yield Part(
            name=name,
            image=image["name"],
            version=image["version"],
            environment=environment,
            ports=frozenset(map(int, said + published)),
        )


def parts_of_manifests(target: str) -> Iterator[Part]:
    """The containers of ours in a folder of `k8s/`."""
    for pod in pods(rendered(target)):
        for container in pod.containers:
            image = IMAGE.fullmatch(container["image"].removeprefix("registry.example/"))
            if image is None:
                continue
            environment = {each["name"]: str(each.get("value", "")) for each in container.get("env", ())}
            said = [*re.findall(r":(\d{4,5})\b", " ".join(_own_addresses(environment)))]
            yield Part(
                name=pod.name,
                image=image["name"],
                version=image["version"],
                arguments=tuple(container.get("args", ())),
                environment=environment,
                ports=frozenset([*map(int, said), *(port["containerPort"] for port in container.get("ports", ()))]),
            )


def _own_addresses(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if name == "HEALTH_URL" or name.endswith(("_LISTEN", "_GRPC", "_HTTP")):
            yield value


def variables_of(image: str) -> set[str]:
    """All that the program of an image reads."""
    if image in COMMANDS:
        main: click.Command = import_module(COMMANDS[image]).main
        return set(_variables(main))
    return _variables_of_adapter(image.removeprefix("adapter-"))


def _variables(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, SecretOption):
            yield from parameter.variables
        elif isinstance(parameter.envvar, str):
            yield parameter.envvar
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _variables(inner)


def _variables_of_adapter(name: str) -> set[str]:
    """From its text: its framework is in another environment."""
    if name in HOSTED:
        command = hosted_command(name, "", "http://service", lambda _: None)  # type: ignore[arg-type, return-value]
    else:
        command = adapter_command(name, "", lambda _: None)  # type: ignore[arg-type, return-value]
    shared = set(_variables(command))
    tree = ast.parse((ROOT / f"adapters/{name}/memdock_{name.replace('-', '_')}/cli.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "option":
            flag = ast.literal_eval(node.args[0])
            variable = "MEMDOCK_ADAPTER_" + flag.removeprefix("--").replace("-", "_").upper()
            shared.add(variable)
            if any(keyword.arg == "secret" for keyword in node.keywords):
                shared.add(f"{variable}_FILE")
    return shared


def version_of(folder: str) -> str:
    """A distribution's version."""
    found = re.search(r'^version = "(.+)"$', (ROOT / folder / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def folder_of(image: str) -> str:
    """Where the distribution of an image is."""
    if image.startswith("adapter-"):
        return f"adapters/{image.removeprefix('adapter-')}"
    return {"embedder": "services/embedder", "meter": "services/meter"}.get(image, image)
