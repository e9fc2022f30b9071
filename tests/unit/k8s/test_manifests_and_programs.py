"""What the manifests of `k8s/` say to the programs: commands, variables, ports, configurations and plans."""

import base64
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from memdock.adapter.command import adapter_command
from memdock.adapter.hosted import hosted_command
from memdock.secret_option import SecretOption
from memdock_embedder.cli import main as embedder
from memdock_evaluator.cli import main as evaluator
from memdock_evaluator.dataset import open_dataset
from memdock_evaluator.dataset.shipped import own_dataset_path
from memdock_evaluator.run.plan_file import plan_fields, take_plan
from memdock_gateway.cli import main as gateway
from memdock_gateway.config import Listen
from memdock_gateway.config_file import load_config
from memdock_meter.cli import main as meter
from memdock_meter.config import Config as MeterConfig
from memdock_meter.config import read_config
from memdock_pgvector.cli import main as pgvector
from support.manifests import K8S, TARGETS, Document, Pod, in_cluster, of_kind, pods, rendered
from support.processes import clean_environment, command_path
from unit.k8s.test_manifests import SECRETS

PROGRAMS: Mapping[str, click.Group] = {
    "gateway": gateway,
    "evaluator": evaluator,
    "embedder": embedder,
    "embedder-sentence": embedder,
    "meter": meter,
    "adapter-pgvector": pgvector,
}
FRAMEWORKS = ("adapter-mem0", "adapter-mem0g", "adapter-graphiti", "adapter-cortex", "adapter-memos")
HOSTED = ("adapter-zep-cloud", "adapter-mem0-hosted")
"""Their commands need the frameworks to be imported; what they share is `memdock.adapter.command`, and `.hosted`."""

on_targets = pytest.mark.parametrize("target", TARGETS)


def program_of(container: Mapping[str, Any]) -> str:
    """ "gateway" of "registry.example/memdock/gateway:0.1.0", "" of an image that is not ours."""
    found = re.search(r"(?:^|/)memdock/([a-z0-9-]+):", container["image"])
    return found[1] if found else ""


def ours(documents: tuple[Document, ...]) -> Iterator[tuple[Pod, Mapping[str, Any], click.Command]]:
    """Each container of ours with the command that it runs."""
    for pod in pods(documents):
        for container in pod.containers:
            if (name := program_of(container)) and name not in (*FRAMEWORKS, *HOSTED) and "command" not in container:
                yield pod, container, command_of(PROGRAMS[name], container["args"][0])


def command_of(program: click.Group, name: str) -> click.Command:
    found = program.get_command(click.Context(program), name)
    assert found is not None, f"there is no command {name}"
    return found


def variables_of(command: click.Command) -> Mapping[str, click.Parameter]:
    return {option.envvar: option for option in command.params if isinstance(option.envvar, str)}


@on_targets
def test_every_variable_is_a_setting_of_the_command(target: str) -> None:
    for pod, container, command in ours(rendered(target)):
        known = variables_of(command)
        for variable in container.get("env", ()):
            if not variable["name"].startswith("MEMDOCK_"):
                continue
            option = known.get(variable["name"])
            assert option is not None, f"{pod.name}: {variable['name']}"
            value = variable.get("value")
            if value is not None and not isinstance(option.type, click.Path):
                option.process_value(click.Context(command), value)


@pytest.mark.parametrize("target", ["frameworks", "hosted"])
def test_the_adapters_variables_are_those_that_they_share(target: str) -> None:
    async def nothing(*_: Any) -> None:
        """The command is only looked at."""

    if target == "hosted":
        program = hosted_command("x", "x", "https://x", nothing)  # type: ignore[arg-type]
    else:
        program = adapter_command("x", "x", nothing)  # type: ignore[arg-type]
    command = command_of(program, "serve")
    known = variables_of(command)
    by_file = {name: f"{name}_FILE" for name, option in known.items() if isinstance(option, SecretOption)}
    needed = {by_file.get(name, name) for name, option in known.items() if option.required}
    for pod in pods(rendered(target)):
        given = {variable["name"]: variable["value"] for variable in pod.spec["containers"][0]["env"]}
        assert given.keys() <= known.keys() | set(by_file.values()), pod.name
        assert needed <= given.keys(), pod.name
        for name, value in given.items():
            if name in known:
                known[name].process_value(click.Context(click.Command("serve")), value)


@on_targets
def test_every_option_of_a_command_line_is_one(target: str) -> None:
    for pod, container, command in ours(rendered(target)):
        options = {name: option for option in command.params for name in option.opts}
        for word in container["args"][1:]:
            assert not word.startswith("--") or word in options, f"{pod.name}: {word}"
        lines = " ".join(container["args"])
        for variable in re.findall(r"\$\((\w+)\)", lines):
            assert variable in {each["name"] for each in container["env"]}, f"{pod.name}: {variable}"


PORTS = {
    "gateway": {"grpc": 7450, "http": 7451},
    "evaluator": {"http": 7480},
    "embedder": {"http": 7460},
    "meter": {"http": 7480},
}


def test_ports_are_the_commands_own() -> None:
    found = {pod.name: dict(pod.ports) for pod in pods(rendered("base"))}
    assert {name: found[name] for name in PORTS} == PORTS
    listen = {
        name: next(option.default for option in command_of(PROGRAMS[name], "serve").params if option.name == "listen")
        for name in ("evaluator", "embedder")
    }
    addresses: Mapping[str, Mapping[str, Any]] = {
        "gateway": {"grpc": Listen().grpc, "http": Listen().http},
        "evaluator": {"http": listen["evaluator"]},
        "embedder": {"http": listen["embedder"]},
        "meter": {"http": MeterConfig.model_fields["listen"].default},
    }
    assert {
        name: {face: int(str(address).rpartition(":")[2]) for face, address in faces.items()}
        for name, faces in addresses.items()
    } == PORTS


@on_targets
def test_every_listener_is_at_the_ports_that_its_pod_names(target: str) -> None:
    for pod, container, _ in ours(rendered(target)):
        for variable in container.get("env", ()):
            if variable["name"].endswith(("_LISTEN", "_GRPC", "_HTTP")):
                host, _, port = variable["value"].rpartition(":")
                assert host == "0.0.0.0"
                assert int(port) in pod.ports.values(), pod.name


@on_targets
def test_every_address_is_of_a_service_and_its_port(target: str) -> None:
    documents = in_cluster(target)
    services = {
        (each["metadata"]["name"], port["port"])
        for each in of_kind(documents, "Service")
        for port in each["spec"]["ports"]
    }
    texts = [
        value
        for document in documents
        for value in (
            *(document.get("data") or {}).values(),
            *(
                variable.get("value", "")
                for pod in pods((document,))
                for each in pod.containers
                for variable in each.get("env", ())
            ),
        )
    ]
    addresses = {
        (host, int(port))
        for text in texts
        for host, port in re.findall(r"(?:grpcs?|https?)://([a-z][a-z0-9-]*):(\d+)", text)
    }
    assert addresses
    assert addresses <= services


@pytest.mark.parametrize("target", ["base", "overlays/gpu"])
def test_the_meter_takes_its_configuration(target: str, tmp_path: Path) -> None:
    (found,) = [each for each in rendered(target) if each["kind"] == "ConfigMap" and "meter.yaml" in each["data"]]
    for name, text in found["data"].items():
        (tmp_path / name).write_text(text)
    config = read_config(tmp_path / "meter.yaml", listen="0.0.0.0:7480")
    assert {"evaluator", "mem0", "mem0g", "graphiti", "cortex", "memos"} <= config.systems.keys()
    assert {each.key_file for each in config.upstreams.values()} == {None, Path("/keys/chat.key")}
    assert config.prices is not None
    assert config.prices.exists()
    shipped = Path(__file__).parents[3] / "evaluator/memdock_evaluator/cost/prices.yaml"
    assert config.prices.read_bytes() == shipped.read_bytes(), "the meter and the evaluator price alike"


def plans() -> Iterator[tuple[str, Document, Mapping[str, str]]]:
    """Target, Job and the ConfigMap of its plan."""
    for target in TARGETS:
        documents = rendered(target)
        maps = {each["metadata"]["name"]: each["data"] for each in of_kind(documents, "ConfigMap")}
        for pod in pods(documents):
            for volume in pod.spec.get("volumes", ()):
                if volume["name"] == "plan":
                    yield target, pod.owner, maps[volume["configMap"]["name"]]


def test_every_plan_is_one(tmp_path: Path) -> None:
    found = list(plans())
    assert [target for target, _, _ in found] == list(TARGETS[:5])
    for target, job, data in found:
        context = click.Context(command_of(evaluator, "job"))
        fields = plan_fields(data["plan.yaml"], target)
        take_plan(context, fields, target)
        given = context.default_map or {}
        assert not given.keys() & {"shard", "out", "of", "index"}
        if "judges" in given:
            from memdock_evaluator.judging.configured import read_judges

            path = tmp_path / "judges.yaml"
            path.write_text(data[Path(str(given["judges"])).name])
            assert len(list(read_judges(path, timeout_s=1.0, tries=1, concurrency=1))) == 2
        if job["kind"] == "Job":
            spec = job["spec"]
            args = spec["template"]["spec"]["containers"][0]["args"]
            assert args[args.index("--of") + 1] == str(spec["completions"]), target
            assert spec["completionMode"] == "Indexed"
            if given["data"] == ["own"]:
                dialogues = {each.dialogue_id for each in open_dataset(str(own_dataset_path("ru")), language="ru")}
                assert spec["completions"] <= len(dialogues)


def test_the_audit_of_all_gateways_is_printed(tmp_path: Path) -> None:
    """Also of those that are gone, each in a folder of its own."""
    for name, line in (("gateway-a", "1"), ("gateway-b", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "audit.jsonl").write_text(line + "\n")
    (pod,) = pods(rendered("audit"))
    (main,) = pod.spec["containers"]
    assert main["command"][1:] == ["-c"]
    (mounted,) = [each["mountPath"] for each in main["volumeMounts"] if each["name"] == "audit"]
    script = main["args"][0].replace(f'"{mounted}"', repr(str(tmp_path)))
    assert script != main["args"][0]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n2\n"
    (gateway,) = [each for each in pods(rendered("base")) if each.name == "gateway"]
    (own,) = [each for each in gateway.spec["containers"][0]["volumeMounts"] if each["name"] == "audit"]
    assert (own["mountPath"], own["subPathExpr"]) == ("/audit", "$(POD_NAME)")


@pytest.mark.parametrize(("base", "completions"), [("../production/evaluation", 17), ("../../job", 3)])
def test_another_run_is_one_job_more(tmp_path: Path, base: str, completions: int) -> None:
    """As the README writes it: the stack that is there stays as it is, and the run has a name and a plan of its own."""
    found = re.search(r"<!-- another run -->\n```yaml\n(.*?)```", (K8S / "README.md").read_text(), re.DOTALL)
    assert found
    assert "resources: [../production/evaluation]" in found[1]
    shutil.copytree(K8S, tmp_path / "k8s")
    mine = tmp_path / "k8s/overlays/mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(found[1].replace("../production/evaluation", base))
    (mine / "plan.yaml").write_text("data: [own]\n")
    done = subprocess.run([command_path("kubectl"), "kustomize", mine], capture_output=True, text=True, check=True)
    made = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    assert made.keys() == {"ConfigMap", "Job"}
    assert made["ConfigMap"]["data"] == {"plan.yaml": "data: [own]\n"}
    job = made["Job"]
    assert (job["metadata"]["name"], job["spec"]["completions"]) == ("evaluation-mine", completions)
    (pod,) = pods((job,))
    volumes = {each["name"]: each for each in pod.spec["volumes"]}
    assert volumes["plan"]["configMap"]["name"] == made["ConfigMap"]["metadata"]["name"]
    assert volumes["keys"]["secret"]["secretName"] == "evaluator"
    (main,) = pod.spec["containers"]
    assert main["env"][0 if base == "../../job" else 1]["valueFrom"]["configMapKeyRef"]["name"] == "results"


def test_an_exit_code_of_the_job_is_told_apart_as_the_command_says() -> None:
    """0 done; 1 again; 2 for every index; 3 and 4 for this one: `memdock-eval run --help`."""
    for target in ("overlays/local", "overlays/production"):
        (job,) = of_kind(rendered(target), "Job")
        rules = job["spec"]["podFailurePolicy"]["rules"]
        assert rules[0] == {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }, "what is evicted is not counted, whatever else it is"
        codes = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules[1:]}
        assert codes == {"FailJob": [2], "FailIndex": [3, 4]}
        assert job["spec"]["backoffLimitPerIndex"] > 0
        assert "backoffLimit" not in job["spec"]
        assert job["spec"]["podReplacementPolicy"] == "Failed"


@pytest.mark.parametrize("target", ["overlays/nightly", "overlays/nightly-production"])
def test_a_night_that_was_decided_is_not_tried_again(target: str) -> None:
    """Of the gate every code but 0, of the run those that another try cannot mend; 1 of the run is tried again."""
    (job,) = of_kind(rendered(target), "CronJob")
    rules = job["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rules[0] == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    codes = {
        rule["onExitCodes"]["containerName"]: (rule["action"], rule["onExitCodes"]["values"]) for rule in rules[1:]
    }
    assert codes == {"main": ("FailJob", [1, 2, 3]), "run": ("FailJob", [2, 3, 4])}


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "tls"])
def secrets(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, Path, list[Document]]:
    """What secrets.sh prints, and its folder."""
    folder = tmp_path_factory.mktemp("secrets") / "gw"
    bin_folder = str(Path(command_path("memdock")).parent)
    environment = clean_environment({"PATH": f"{bin_folder}:/usr/bin:/bin", "CHAT_KEY": "sk-of-the-test"})
    done = subprocess.run(
        ["sh", K8S / "secrets.sh", *(["--tls"] if request.param else []), folder, "rag-dense", "mem0"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return request.param, folder, [each for each in yaml.safe_load_all(done.stdout) if each]


def test_the_secrets_are_those_that_are_referred_to(secrets: tuple[bool, Path, list[Document]]) -> None:
    _, folder, made = secrets
    assert {each["metadata"]["name"]: frozenset(each["data"]) for each in made} == SECRETS
    data = {each["metadata"]["name"]: each["data"] for each in made}
    assert base64.b64decode(data["models"]["chat.key"]) == b"sk-of-the-test"
    password = base64.b64decode(data["stores"]["password"]).decode()
    url = base64.b64decode(data["stores"]["pgvector.url"]).decode()
    assert url == f"postgresql://memdock:{password}@postgres:5432/memdock"
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} <= {0}


def test_the_gateway_takes_its_secret(secrets: tuple[bool, Path, list[Document]], tmp_path: Path) -> None:
    tls, _, made = secrets
    (data,) = [each["data"] for each in made if each["metadata"]["name"] == "gateway"]
    for name, content in data.items():
        text = base64.b64decode(content).decode()
        # The folders of the pod.
        for place in ("/audit", "/tls"):
            (tmp_path / place[1:]).mkdir(exist_ok=True)
            text = text.replace(f" {place}/", f" {tmp_path}{place}/")
        (tmp_path / name).write_text(text)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / "tls" / name).write_text("a certificate of the cluster's")
    config = load_config(tmp_path / "gateway.yaml")
    assert (config.listen.grpc, config.listen.http) == ("0.0.0.0:7450", "0.0.0.0:7451")
    assert {each.name: each.address for each in config.systems} == {
        "rag-dense": "grpc://rag-dense:7470",
        "mem0": "grpc://mem0:7470",
    }
    assert (config.listen.tls is not None) is tls


def test_secrets_that_are_there_are_not_made_anew(secrets: tuple[bool, Path, list[Document]]) -> None:
    _, folder, _ = secrets
    bin_folder = str(Path(command_path("memdock")).parent)
    again = subprocess.run(
        ["sh", K8S / "secrets.sh", folder, "rag-dense"],
        capture_output=True,
        text=True,
        env=clean_environment({"PATH": f"{bin_folder}:/usr/bin:/bin"}),
        check=False,
    )
    assert again.returncode != 0
    assert "is there already; nothing was written" in again.stderr
    assert not again.stdout
