"""The manifests of `k8s/` as a cluster would get them, and what their NetworkPolicies let through."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from support.processes import command_path

Document: TypeAlias = Mapping[str, Any]

K8S = Path(__file__).parents[2] / "k8s"
TARGETS = (
    *("overlays/local", "overlays/production", "overlays/gpu", "overlays/nightly", "overlays/nightly-production"),
    *("frameworks", "hosted", "audit"),
)
BESIDE = {
    "overlays/nightly": "overlays/local",
    "overlays/nightly-production": "overlays/production",
    "frameworks": "overlays/local",
    "hosted": "overlays/local",
    "audit": "overlays/local",
}
"""What stands beside another one that is there: name -> that one."""
WORKLOADS = ("Deployment", "StatefulSet", "Job", "CronJob")


@cache
def rendered(target: str) -> tuple[Document, ...]:
    """The documents of a folder with a kustomization."""
    done = subprocess.run(
        [command_path("kubectl"), "kustomize", str(K8S / target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def in_cluster(target: str) -> tuple[Document, ...]:
    """The documents with those that they stand beside."""
    return rendered(target) + (rendered(BESIDE[target]) if target in BESIDE else ())


def name_of(document: Document) -> str:
    """ "Deployment/gateway"."""
    return f"{document['kind']}/{document['metadata']['name']}"


def of_kind(documents: Sequence[Document], *kinds: str) -> list[Document]:
    """Those of these kinds."""
    return [document for document in documents if document["kind"] in kinds]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """What a workload makes: its owner, its labels, its spec."""

    owner: Document
    labels: Mapping[str, str]
    spec: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The owner's."""
        return str(self.owner["metadata"]["name"])

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        """Those that come first, too."""
        return [*self.spec.get("initContainers", ()), *self.spec["containers"]]

    @property
    def ports(self) -> Mapping[str, int]:
        """Name -> number, of all containers."""
        return {port["name"]: port["containerPort"] for each in self.containers for port in each.get("ports", ())}


def pods(documents: Sequence[Document]) -> list[Pod]:
    """One of each workload."""
    return [_pod(document) for document in of_kind(documents, *WORKLOADS)]


def _pod(document: Document) -> Pod:
    spec = document["spec"]
    if document["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    template = spec["template"]
    return Pod(owner=document, labels=template["metadata"]["labels"], spec=template["spec"])


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes these labels; an empty one takes all."""
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for each in selector.get("matchExpressions", ()):
        assert each["operator"] == "In", f"the tests know no operator {each['operator']}"
        if labels.get(each["key"]) not in each["values"]:
            return False
    return True


def reachable(documents: Sequence[Document]) -> set[tuple[str, str, int]]:
    """Pod, pod and port, of all that the NetworkPolicies let through inside of the namespace."""
    policies, every = of_kind(documents, "NetworkPolicy"), pods(documents)
    return {
        (source.name, target.name, port)
        for source in every
        for target in every
        for port in target.ports.values()
        if _lets(policies, "Egress", source, target, port) and _lets(policies, "Ingress", target, source, port)
    }


def from_anywhere(documents: Sequence[Document]) -> set[tuple[str, int]]:
    """Pods and ports that everybody may reach, from outside of the namespace too."""
    return {
        (pod.name, port)
        for pod in pods(documents)
        for port in pod.ports.values()
        for rule in _rules(of_kind(documents, "NetworkPolicy"), "Ingress", pod)
        if not rule.get("from") and _has_port(rule, port)
    }


def ways_out(documents: Sequence[Document]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Pod, network and ports, of all rules that let a pod reach addresses rather than pods."""
    for pod in pods(documents):
        for rule in _rules(of_kind(documents, "NetworkPolicy"), "Egress", pod):
            ports = tuple(port["port"] for port in rule.get("ports", ()))
            if not rule.get("to"):
                yield pod.name, "anywhere", ports
            for peer in rule.get("to", ()):
                if "ipBlock" in peer:
                    yield pod.name, peer["ipBlock"]["cidr"], ports


def _lets(policies: Sequence[Document], way: str, pod: Pod, other: Pod, port: int) -> bool:
    peers = "to" if way == "Egress" else "from"
    held = [each for each in policies if way in each["spec"]["policyTypes"] and _holds(each, pod)]
    return not held or any(
        _has_port(rule, port) and (not rule.get(peers) or any(_is_peer(peer, other) for peer in rule[peers]))
        for rule in _rules(policies, way, pod)
    )


def _rules(policies: Sequence[Document], way: str, pod: Pod) -> Iterator[Mapping[str, Any]]:
    for policy in policies:
        if way in policy["spec"]["policyTypes"] and _holds(policy, pod):
            yield from policy["spec"].get(way.lower(), ())


def _holds(policy: Document, pod: Pod) -> bool:
    return selects(policy["spec"]["podSelector"], pod.labels)


def _is_peer(peer: Mapping[str, Any], pod: Pod) -> bool:
    """All of the namespace's pods have the name of its namespace alone, and no label that another asks for."""
    return (
        "podSelector" in peer
        and not peer.get("namespaceSelector", {}).get("matchLabels")
        and selects(peer["podSelector"], pod.labels)
    )


def _has_port(rule: Mapping[str, Any], port: int) -> bool:
    return not rule.get("ports") or any(each["port"] == port for each in rule["ports"])
