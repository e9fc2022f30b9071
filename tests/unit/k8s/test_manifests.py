"""The manifests of `k8s/`, rendered: by the schemas of two versions of Kubernetes, and what schemas do not see."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from support.manifests import (
    K8S,
    TARGETS,
    Document,
    Pod,
    from_anywhere,
    in_cluster,
    name_of,
    of_kind,
    pods,
    reachable,
    rendered,
    selects,
    ways_out,
)

VERSIONS = ("1.31", "1.34")
PARTS = (*TARGETS, "base", "postgres", "job")
SECRETS: Mapping[str, frozenset[str]] = {
    "gateway": frozenset({"gateway.yaml", "keys.json", "space-keys.yaml"}),
    "evaluator": frozenset({"keys.json", "evaluator.key"}),
    "stores": frozenset({"password", "pgvector.url"}),
    "models": frozenset({"chat.key"}),
    "results": frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"}),
}
"""What secrets.sh makes; a test of it holds this."""
OWN_SECRETS, OWN_CLAIMS = {"gateway-tls", "evaluator-tls", "hosted"}, {"data", "models"}
"""What the user makes, as README.md says."""

on_targets = pytest.mark.parametrize("target", TARGETS)
on_parts = pytest.mark.parametrize("target", PARTS)


@on_parts
@pytest.mark.parametrize("version", VERSIONS)
def test_the_schemas_take_it(target: str, version: str) -> None:
    """A kind or version that a schema does not know is an error here, where the command only warns."""
    for document in rendered(target):
        kubernetes_validate.validate(document, version, strict=True)


def test_an_unknown_kind_and_an_unknown_field_are_errors() -> None:
    known = next(document for document in rendered("base") if document["kind"] == "Deployment")
    with pytest.raises(kubernetes_validate.SchemaNotFoundError):
        kubernetes_validate.validate({**known, "apiVersion": "apps/v9"}, VERSIONS[0], strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**known, "spek": {}}, VERSIONS[0], strict=True)


ENUMS: Mapping[str, frozenset[str]] = {
    name: frozenset(values.split())
    for name, values in {
        "imagePullPolicy": "Always IfNotPresent Never",
        "restartPolicy": "Always OnFailure Never",
        "concurrencyPolicy": "Allow Forbid Replace",
        "completionMode": "Indexed NonIndexed",
        "podReplacementPolicy": "TerminatingOrFailed Failed",
        "action": "FailJob FailIndex Ignore Count",
        "whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
        "externalTrafficPolicy": "Local Cluster",
        "unhealthyPodEvictionPolicy": "IfHealthyBudget AlwaysAllow",
        "fsGroupChangePolicy": "OnRootMismatch Always",
        "scheme": "HTTP HTTPS",
        "protocol": "TCP UDP SCTP",
        "effect": "NoSchedule PreferNoSchedule NoExecute",
        "operator": "In NotIn Exists DoesNotExist Equal",
        "accessModes": "ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod",
        "policyTypes": "Ingress Egress",
        "medium": "Memory",
    }.items()
}
TYPES = {"Service": {"ClusterIP", "LoadBalancer", "NodePort"}, "strategy": {"Recreate", "RollingUpdate"}}
QUANTITY = re.compile(r"(\d+(\.\d+)?)(m|[KMGT]i|[kMGT])?")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def fields(value: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every field at any depth: its path, its name, its value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{path}.{name}", name, inner
            yield from fields(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from fields(inner, f"{path}[{number}]")


@on_parts
def test_words_quantities_and_names_are_those_that_there_are(target: str) -> None:
    for document in rendered(target):
        for path, name, value in fields(document):
            where = f"{name_of(document)}{path}"
            if name in ENUMS and ".data." not in path:
                assert set(value if isinstance(value, list) else [value]) <= ENUMS[name], where
            if name == "strategy":
                assert value.get("type", "RollingUpdate") in TYPES["strategy"], where
            if name in ("requests", "limits"):
                for quantity in value.values():
                    assert QUANTITY.fullmatch(str(quantity)), where
            if name == "sizeLimit":
                assert QUANTITY.fullmatch(str(value)), where
            if name in ("labels", "matchLabels"):
                assert all(LABEL.fullmatch(label) for label in value.values()), where
        if document["kind"] == "Service":
            assert document["spec"].get("type", "ClusterIP") in TYPES["Service"]
        assert NAME.fullmatch(document["metadata"]["name"]), name_of(document)
        assert document["metadata"].get("namespace", "memdock") == "memdock"
    for pod in pods(rendered(target)):
        for container in pod.containers:
            assert NAME.fullmatch(container["name"])
            assert all(re.fullmatch("[a-z0-9-]{1,15}", port["name"]) for port in container.get("ports", ()))


@on_targets
def test_nothing_stands_there_twice(target: str) -> None:
    names = [name_of(document) for document in in_cluster(target)]
    assert len(names) == len(set(names))


@on_parts
def test_every_pod_is_restricted(target: str) -> None:
    """Pod Security's "restricted", a root that cannot be written, and no token."""
    for pod in pods(rendered(target)):
        of_pod = pod.spec["securityContext"]
        assert pod.spec["automountServiceAccountToken"] is False, pod.name
        assert pod.spec["enableServiceLinks"] is False, f"{pod.name}: a program refuses variables that it does not know"
        assert of_pod["runAsNonRoot"] is True
        assert of_pod["runAsUser"] == of_pod["runAsGroup"] == of_pod["fsGroup"]
        assert of_pod["runAsUser"] == (999 if pod.name == "postgres" else 10001)
        assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any(pod.spec.get(field) for field in ("hostNetwork", "hostPID", "hostIPC"))
        assert not any("hostPath" in volume for volume in pod.spec.get("volumes", ()))
        assert {container["name"] for container in pod.spec["containers"]} == {"main"}
        for container in pod.containers:
            held = container["securityContext"]
            assert held["allowPrivilegeEscalation"] is False
            assert held["readOnlyRootFilesystem"] is True
            assert held["capabilities"] == {"drop": ["ALL"]}
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
            assert "memory" in container["resources"]["limits"]


@on_parts
def test_servers_are_probed_and_jobs_end(target: str) -> None:
    for pod in pods(rendered(target)):
        (main,) = pod.spec["containers"]
        probes = {"startupProbe", "livenessProbe", "readinessProbe"}
        if pod.owner["kind"] in ("Deployment", "StatefulSet"):
            assert probes <= main.keys(), pod.name
            for probe in probes:
                if "httpGet" in main[probe]:
                    assert main[probe]["httpGet"]["port"] in pod.ports
        else:
            assert pod.spec["restartPolicy"] == "Never"
            assert not probes & main.keys()


@on_targets
def test_what_is_selected_is_there(target: str) -> None:
    documents = in_cluster(target)
    every = pods(documents)
    for document in of_kind(documents, "Deployment", "StatefulSet"):
        assert selects(document["spec"]["selector"], pod_of(document, every).labels), name_of(document)
    for service in of_kind(documents, "Service"):
        found = [pod for pod in every if selects({"matchLabels": service["spec"]["selector"]}, pod.labels)]
        assert found, name_of(service)
        for port in service["spec"]["ports"]:
            assert all(port["targetPort"] in pod.ports for pod in found), name_of(service)
            assert all(pod.ports[port["targetPort"]] == port["port"] for pod in found), name_of(service)
    for budget in of_kind(documents, "PodDisruptionBudget"):
        assert any(selects(budget["spec"]["selector"], pod.labels) for pod in every), name_of(budget)
    for scaler in of_kind(documents, "HorizontalPodAutoscaler"):
        wanted = scaler["spec"]["scaleTargetRef"]
        (scaled,) = [each for each in documents if name_of(each) == f"{wanted['kind']}/{wanted['name']}"]
        assert scaled["apiVersion"] == wanted["apiVersion"]
        assert "replicas" not in scaled["spec"], "an apply would undo what the autoscaler has decided"
        assert scaler["spec"]["minReplicas"] <= scaler["spec"]["maxReplicas"]
        for metric in scaler["spec"]["metrics"]:
            assert 30 <= metric["resource"]["target"]["averageUtilization"] <= 90, "of what the pod asks for"
    for document in of_kind(documents, "StatefulSet"):
        assert f"Service/{document['spec']['serviceName']}" in map(name_of, documents)


def pod_of(document: Document, every: list[Pod]) -> Pod:
    return next(pod for pod in every if pod.owner is document)


@on_targets
def test_a_budget_lets_a_node_be_drained(target: str) -> None:
    """One that asks for all of the pods there are would hold the node for ever."""
    documents = in_cluster(target)
    for budget in of_kind(documents, "PodDisruptionBudget"):
        assert budget["spec"].get("maxUnavailable", 0) >= 1, name_of(budget)
        assert "minAvailable" not in budget["spec"], name_of(budget)


@on_targets
def test_policies_name_pods_and_ports_that_there_are(target: str) -> None:
    documents = in_cluster(target)
    every = pods(documents)
    for policy in of_kind(documents, "NetworkPolicy"):
        held = [pod for pod in every if selects(policy["spec"]["podSelector"], pod.labels)]
        assert held, name_of(policy)
        ports = {port for pod in held for port in pod.ports.values()}
        for rule in policy["spec"].get("ingress", ()):
            assert {port["port"] for port in rule["ports"]} <= ports, name_of(policy)
            _check_peers(policy, rule.get("from", ()), every, set())
        for rule in policy["spec"].get("egress", ()):
            _check_peers(policy, rule.get("to", ()), every, {port["port"] for port in rule.get("ports", ())})


def _check_peers(policy: Document, peers: Any, every: list[Pod], ports: set[int]) -> None:
    for peer in peers:
        if "ipBlock" in peer or "namespaceSelector" in peer:
            continue
        found = [pod for pod in every if selects(peer["podSelector"], pod.labels)]
        assert found, f"{name_of(policy)} names a pod that is not there: {peer}"
        assert ports <= {port for pod in found for port in pod.ports.values()}, name_of(policy)


@on_targets
def test_config_maps_secrets_claims_and_accounts_are_there(target: str) -> None:
    documents = in_cluster(target)
    maps = {each["metadata"]["name"]: each["data"].keys() for each in of_kind(documents, "ConfigMap")}
    claims = {each["metadata"]["name"] for each in of_kind(documents, "PersistentVolumeClaim")} | OWN_CLAIMS
    accounts = of_kind(documents, "ServiceAccount")
    for pod in pods(documents):
        (account,) = [each for each in accounts if each["metadata"]["name"] == pod.spec["serviceAccountName"]]
        assert account["automountServiceAccountToken"] is False
        mounted: dict[str, Any] = {}
        for volume in pod.spec.get("volumes", ()):
            mounted[volume["name"]] = volume
            if "configMap" in volume:
                assert _items(volume["configMap"]) <= maps[volume["configMap"]["name"]], pod.name
            if "secret" in volume and (name := volume["secret"]["secretName"]) not in OWN_SECRETS:
                assert _items(volume["secret"]) <= SECRETS[name], pod.name
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in claims, pod.name
        templates = {each["metadata"]["name"] for each in pod.owner["spec"].get("volumeClaimTemplates", ())}
        for container in pod.containers:
            used = {mount["name"] for mount in container.get("volumeMounts", ())}
            assert used <= mounted.keys() | templates, pod.name
            for mount in container["volumeMounts"]:
                if mounted.get(mount["name"], {}).keys() & {"secret", "configMap"}:
                    assert mount["readOnly"] is True, f"{pod.name}: {mount['mountPath']}"
            assert len({mount["mountPath"] for mount in container["volumeMounts"]}) == len(container["volumeMounts"])
            for variable in container.get("env", ()):
                source = variable.get("valueFrom", {})
                if "configMapKeyRef" in source:
                    assert source["configMapKeyRef"]["key"] in maps[source["configMapKeyRef"]["name"]]
                if "secretKeyRef" in source:
                    assert source["secretKeyRef"]["key"] in SECRETS[source["secretKeyRef"]["name"]]
            for whole in container.get("envFrom", ()):
                assert whole["secretRef"]["name"] in SECRETS


@on_targets
def test_files_that_are_named_are_in_what_is_mounted(target: str) -> None:
    """In variables, arguments, and in configurations that are mounted themselves."""
    documents = in_cluster(target)
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(documents, "ConfigMap")}
    named = 0
    for pod in pods(documents):
        for container in pod.containers:
            texts = [each["value"] for each in container.get("env", ()) if "value" in each]
            texts += container.get("args", ())
            files: dict[str, set[str]] = {}
            volumes: dict[str, Any] = {each["name"]: each for each in pod.spec["volumes"]}
            for mount in container["volumeMounts"]:
                volume = volumes.get(mount["name"], {})
                if "configMap" in volume:
                    data = maps[volume["configMap"]["name"]]
                    files[mount["mountPath"]] = _items(volume["configMap"]) or set(data)
                    texts += data.values()
                if "secret" in volume:
                    of_secret = SECRETS.get(volume["secret"]["secretName"], frozenset({"tls.crt", "tls.key", "ca.crt"}))
                    files[mount["mountPath"]] = _items(volume["secret"]) or set(of_secret)
            for place, there in files.items():
                found = {name for text in texts for name in re.findall(rf"(?<![\w/]){place}/([\w.-]+)", text)}
                named += len(found)
                assert found <= there, f"{pod.name}: {place} has {sorted(there)}"
    assert named > 5


def _items(source: Mapping[str, Any]) -> set[str]:
    return {item["key"] for item in source.get("items", ())}


@on_targets
def test_one_writer_never_meets_a_second_one(target: str) -> None:
    """A pod with a claim that is no shared one, and an adapter, whose schema or ledger has one owner."""
    documents = in_cluster(target)
    modes = {
        each["metadata"]["name"]: each["spec"]["accessModes"] for each in of_kind(documents, "PersistentVolumeClaim")
    }
    for pod in pods(documents):
        if pod.owner["kind"] != "Deployment" or pod.name == "gateway":
            continue
        claims = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod.spec.get("volumes", ())
            if "persistentVolumeClaim" in volume and not volume["persistentVolumeClaim"].get("readOnly")
        ]
        assert all(modes[claim] != ["ReadWriteMany"] for claim in claims)
        if claims or pod.labels.get("memdock.dev/role") in ("adapter", "hosted"):
            assert pod.owner["spec"]["replicas"] == 1, pod.name
            assert pod.owner["spec"]["strategy"] == {"type": "Recreate"}, pod.name


@on_targets
def test_gateway_and_adapters_are_found_pod_by_pod(target: str) -> None:
    """gRPC keeps a connection: behind an address of the Service's own all calls of a client would go to one pod."""
    documents = in_cluster(target)
    headless = {
        each["metadata"]["name"] for each in of_kind(documents, "Service") if each["spec"].get("clusterIP") == "None"
    }
    adapters = {pod.name for pod in pods(documents) if pod.labels.get("memdock.dev/role") in ("adapter", "hosted")}
    assert {"gateway", *adapters} <= headless


@pytest.mark.parametrize("target", ["overlays/production", "overlays/nightly-production"])
def test_production_speaks_tls_everywhere_outside(target: str) -> None:
    documents = in_cluster(target)
    (outside,) = [each for each in documents if name_of(each) == "Service/gateway-outside"]
    assert {port["name"]: port.get("appProtocol") for port in outside["spec"]["ports"]} == {
        "grpc": "https",
        "http": None,
    }
    for pod in pods(documents):
        if pod.name in ("gateway", "evaluator"):
            (main,) = pod.spec["containers"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert main[probe]["httpGet"]["scheme"] == "HTTPS"
    addresses = [value for _, _, value in fields([*documents]) if isinstance(value, str) and "://gateway" in value]
    assert addresses
    assert not any("grpc://gateway" in address or "http://gateway" in address for address in addresses)


ADAPTERS = {"rag-dense", "rag-hybrid"}
INSIDE = {
    *(("gateway", adapter, 7470) for adapter in ADAPTERS),
    *((adapter, "embedder", 7460) for adapter in ADAPTERS),
    *((adapter, "meter", 7480) for adapter in ADAPTERS),
    ("meter", "embedder", 7460),
    *((who, "gateway", port) for who in ("evaluator", "evaluation") for port in (7450,)),
    *((who, "meter", 7480) for who in ("evaluator", "evaluation")),
}
STORE = {(adapter, "postgres", 5432) for adapter in ADAPTERS}
FRAMEWORKS = {"mem0", "mem0g", "graphiti", "cortex", "memos"}
OF_FRAMEWORKS = {
    *(("gateway", each, 7470) for each in FRAMEWORKS),
    *((each, "embedder", 7460) for each in FRAMEWORKS),
    *((each, "meter", 7480) for each in FRAMEWORKS),
}
HOSTED = ("zep-cloud", "mem0-hosted")
MODELS = {("meter", "pollux", 8000), *((adapter, "embedder-en", 7460) for adapter in ADAPTERS)}
REACHED = {
    "overlays/local": INSIDE | STORE,
    "overlays/production": INSIDE,
    "overlays/gpu": INSIDE | STORE | MODELS,
    "overlays/nightly": INSIDE | STORE | {("nightly", "gateway", 7450), ("nightly", "meter", 7480)},
    "overlays/nightly-production": INSIDE | {("nightly", "gateway", 7450), ("nightly", "meter", 7480)},
    "frameworks": INSIDE | STORE | OF_FRAMEWORKS,
    "hosted": INSIDE | STORE | {("gateway", each, 7470) for each in HOSTED},
    "audit": INSIDE | STORE,
}


@on_targets
def test_each_reaches_what_it_needs_and_nothing_else(target: str) -> None:
    found = reachable(in_cluster(target))
    # Whoever everybody reaches is reached by the way of anybody: it is told apart.
    assert found == REACHED[target]
    assert from_anywhere(in_cluster(target)) == {("gateway", 7450), ("gateway", 7451), ("evaluator", 7480)}


@on_targets
def test_the_meter_and_hosted_services_alone_have_a_way_out(target: str) -> None:
    out = list(ways_out(in_cluster(target)))
    found = {(pod, ports) for pod, cidr, ports in out if cidr in ("0.0.0.0/0", "::/0", "anywhere")}
    assert found == {(pod, (443,)) for pod in ("meter", *(HOSTED if target == "hosted" else ()))}
    rest = {(pod, ports) for pod, cidr, ports in out if not cidr.endswith("/0")}
    own = {("evaluator", (443,)), ("evaluation", (443,)), *((adapter, (5432,)) for adapter in ADAPTERS)}
    own_of = {"overlays/production": own, "overlays/nightly-production": own | {("nightly", (443,))}}
    assert rest == own_of.get(target, set())


@on_targets
def test_every_pod_may_ask_for_names(target: str) -> None:
    documents = in_cluster(target)
    (names,) = [each for each in of_kind(documents, "NetworkPolicy") if each["metadata"]["name"] == "names"]
    assert all(selects(names["spec"]["podSelector"], pod.labels) for pod in pods(documents))
    ports = {(port["protocol"], port["port"]) for rule in names["spec"]["egress"] for port in rule["ports"]}
    assert ports == {("UDP", 53), ("TCP", 53)}


@cache
def kustomizations() -> list[Path]:
    return sorted(K8S.rglob("kustomization.yaml"))


def test_a_patch_or_an_image_that_matches_nothing_is_none() -> None:
    """kustomize is silent about both."""
    for path in kustomizations():
        what = yaml.safe_load(path.read_text())
        folder = path.parent.relative_to(K8S).as_posix()
        if what["kind"] == "Component":
            continue
        documents = rendered(folder)
        for patch in what.get("patches", ()):
            if target := patch.get("target"):
                kinds = re.compile(target["kind"])
                names = re.compile(target.get("name", ".*"))
                matched = [
                    each
                    for each in documents
                    if kinds.fullmatch(each["kind"]) and names.fullmatch(each["metadata"]["name"])
                ]
                assert matched, f"{path}: {target}"
        images = {container["image"] for pod in pods(documents) for container in pod.containers}
        for image in what.get("images", ()):
            written = f"{image.get('newName', image['name'])}:{image['newTag']}"
            assert written in images, f"{path}: {image['name']}"


@on_targets
def test_every_image_has_a_version(target: str) -> None:
    for pod in pods(rendered(target)):
        for container in pod.containers:
            name, colon, tag = container["image"].rpartition(":")
            assert colon, pod.name
            assert tag not in ("", "latest"), f"{pod.name}: {name}"


def test_every_file_is_used() -> None:
    """A file that no kustomization names is applied nowhere."""
    used = {K8S / "README.md", K8S / "secrets.sh"}
    for path in kustomizations():
        what = yaml.safe_load(path.read_text())
        names = [*what.get("resources", ()), *(patch["path"] for patch in what.get("patches", ()) if "path" in patch)]
        for each in what.get("configMapGenerator", ()):
            names += [file.rpartition("=")[2] for file in each.get("files", ())]
        used |= {path, *(path.parent / name for name in names)}
    left = [path for path in K8S.rglob("*") if path.is_file() and path not in used]
    assert not left
