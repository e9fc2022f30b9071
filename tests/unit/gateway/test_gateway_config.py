"""The configuration file: what it may say, and how a mistake is told."""

from pathlib import Path

import pytest

from memdock_gateway.config import Config, ConfigError, load_config

MINIMAL = """\
systems:
  - name: rag-dense
    address: grpc://127.0.0.1:7460
"""


def load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "gateway.yaml"
    path.write_text(text)
    return load_config(path)


def test_the_smallest_file_has_the_defaults_of_the_protocol(tmp_path: Path) -> None:
    config = load(tmp_path, MINIMAL)
    assert config.listen.grpc == "127.0.0.1:7450"
    assert config.limits.limits().max_turns_per_request == 256
    assert (config.systems[0].deadline_s, config.systems[0].concurrency, config.systems[0].queue) == (60, 64, 256)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    config = load(tmp_path, MINIMAL + "    token_file: token\naudit_file: audit.jsonl\n")
    assert config.systems[0].token_file == tmp_path / "token"
    assert config.audit_file == tmp_path / "audit.jsonl"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (MINIMAL + "    deadline_s: 0\n", r"gateway.yaml:4: systems\[0\].deadline_s: .*greater than 0"),
        (MINIMAL + "    deadlines: 5\n", r"gateway.yaml:4: systems\[0\].deadlines: .*not permitted"),
        (MINIMAL + "    token_file: nowhere\n", r"gateway.yaml:4: systems\[0\].token_file: there is no file"),
        (MINIMAL + "    tls: {cert_file: x}\n", r"gateway.yaml:4: systems\[0\].tls.cert_file: there is no file"),
        (MINIMAL + "    tls: {}\n", r"gateway.yaml:2: systems\[0\]: tls needs an address"),
        (MINIMAL + "listen:\n  grpc: nonsense\n", r"gateway.yaml:5: listen.grpc: 'nonsense' is not host:port"),
        (MINIMAL + "listen:\n  grpc: 127.0.0.1:99999\n", r"gateway.yaml:5: listen.grpc: .* is not host:port"),
        (MINIMAL + MINIMAL.removeprefix("systems:\n"), "gateway.yaml:1: systems: the name rag-dense is there twice"),
        (MINIMAL.replace("grpc://127.0.0.1:7460", "ftp://x"), r"gateway.yaml:3: systems\[0\].address: .*schemes"),
        (MINIMAL.replace("//127", "//user:pass@127"), r"gateway.yaml:3: systems\[0\].address: .*token_file"),
        (MINIMAL.replace("rag-dense", "Rag_Dense"), r"gateway.yaml:2: systems\[0\].name: "),
        ("systems: []\n", "gateway.yaml:1: systems: "),
        ("listen: {}\n", "gateway.yaml:1: systems: Field required"),
        ("- a\n", "gateway.yaml:1: is not a mapping"),
        ("a: [\n", "gateway.yaml: is not YAML"),
        ("", "gateway.yaml:1: is not a mapping"),
        (MINIMAL + "drain_s: 1\ndrain_s: 2\n", "gateway.yaml:5: drain_s is given twice"),
        (MINIMAL + "    queue: 1\n    queue: 2\n", "gateway.yaml:5: queue is given twice"),
        ("systems: &a [*a]\n", "gateway.yaml:1: systems"),
        (MINIMAL + "audit_file: no/such/folder/x\n", "gateway.yaml:4: audit_file: there is no folder"),
        (MINIMAL + "telemetry: {sample_ratio: 2}\n", "gateway.yaml:4: telemetry.sample_ratio: "),
    ],
)
def test_a_mistake_names_its_line_and_field(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load(tmp_path, text)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, MINIMAL + "    queue: -1\n    concurrency: none\n")
    assert len(str(refused.value).splitlines()) == 2


def test_a_wrong_value_is_not_repeated_when_it_may_be_a_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, MINIMAL + "    token: hunter2\n")
    assert "hunter2" not in str(refused.value)


def test_a_system_needs_the_fingerprint_of_its_key_version(tmp_path: Path) -> None:
    (tmp_path / "space-keys.yaml").write_text("keys: []")
    space_key = "space_key: {file: space-keys.yaml, fingerprints: {1: 'sha256:aa'}}\n"
    with pytest.raises(ConfigError, match=r"space_key\.fingerprints lacks version 2, which rag-dense uses"):
        load(tmp_path, MINIMAL + "    space_key_version: 2\n" + space_key)


@pytest.mark.parametrize(
    ("grpc", "loopback"),
    [
        ("127.0.0.1:1", True),
        ("127.8.8.8:1", True),
        ("localhost:1", True),
        ("'[::1]:1'", True),
        ("0.0.0.0:1", False),
        ("10.0.0.1:1", False),
        ("'[::]:1'", False),
        ("example.org:1", False),
    ],
)
def test_loopback_is_told_from_the_rest(tmp_path: Path, grpc: str, loopback: bool) -> None:
    assert load(tmp_path, MINIMAL + f"listen: {{grpc: {grpc}}}\n").listen.loopback is loopback


def test_a_name_that_begins_like_a_loopback_address_is_none(tmp_path: Path) -> None:
    assert not load(tmp_path, MINIMAL + "listen: {http: 127.0.0.1.example.org:1}\n").listen.loopback
