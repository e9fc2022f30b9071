"""The configuration file: what it may say, and how a mistake is told."""

import math
import re
from collections.abc import Iterator
from datetime import date
from inspect import isclass
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from memdock_gateway.config import Config, ConfigError, Section, field_name
from memdock_gateway.config_file import load_config

MINIMAL = """\
systems:
  - name: rag-dense
    address: grpc://127.0.0.1:7470
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


FINGERPRINT = "sha256:" + "0" * 64
ADDRESS = r"gateway.yaml:3: systems\[0\].address: "


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (MINIMAL + "    deadline_s: 0\n", r"gateway.yaml:4: systems\[0\].deadline_s: must be greater than 0$"),
        (MINIMAL + "    deadline_s: 3601\n", r"gateway.yaml:4: systems\[0\].deadline_s: must be at most 3600$"),
        (MINIMAL + "    queue: -1\n", r"gateway.yaml:4: systems\[0\].queue: must be at least 0$"),
        (MINIMAL + "    queue: '5'\n", r"gateway.yaml:4: systems\[0\].queue: must be a whole number, without quotes$"),
        (MINIMAL + "    queue: true\n", r"gateway.yaml:4: systems\[0\].queue: must be a whole number"),
        (MINIMAL + "    deadline_s: 1m\n", r"gateway.yaml:4: systems\[0\].deadline_s: must be a number"),
        (MINIMAL + "    deadline: 5\n", r"systems\[0\].deadline: is not known here; did you mean deadline_s\?$"),
        (
            MINIMAL + "listen:\n  port: 5\n",
            "gateway.yaml:5: listen.port: is not known here; known are grpc, http, tls$",
        ),
        (MINIMAL + "1: 2\n", r"gateway.yaml:4: \[1\]: must be text"),
        (MINIMAL + "limits:\n", "gateway.yaml:4: limits: must be a mapping of fields to values$"),
        (
            MINIMAL + "limits: {max_top_k: 3000000000}\n",
            "gateway.yaml:4: limits.max_top_k: must be at most 2147483647$",
        ),
        (MINIMAL + "keys_file: [a]\n", "gateway.yaml:4: keys_file: must be the name of a file$"),
        (MINIMAL + "    token_file: nowhere\n", r"gateway.yaml:4: systems\[0\].token_file: there is no file"),
        (MINIMAL + "    header_files: {a b: x}\n", r"systems\[0\].header_files.a b: as a name, is no header's name"),
        (MINIMAL + "    header_files: [a]\n", r"systems\[0\].header_files: must be a mapping of names to values$"),
        (MINIMAL + "    tls: {cert_file: x}\n", r"gateway.yaml:4: systems\[0\].tls.cert_file: there is no file"),
        (MINIMAL + "    tls: {}\n", r"gateway.yaml:4: systems\[0\].tls: needs an address"),
        (MINIMAL + "listen:\n  http: 127.0.0.1:1\n  tls: {}\n", "gateway.yaml:6: listen.tls: needs cert_file"),
        (MINIMAL + "listen:\n  grpc: nonsense\n", r"gateway.yaml:5: listen.grpc: 'nonsense' is not host:port"),
        (MINIMAL + "listen:\n  grpc: 127.0.0.1:99999\n", r"gateway.yaml:5: listen.grpc: .* is not host:port"),
        (
            MINIMAL + MINIMAL.removeprefix("systems:\n"),
            r"gateway.yaml:4: systems\[1\].name: .* rag-dense is there twice",
        ),
        (MINIMAL.replace("grpc://127.0.0.1:7470", "ftp://x"), ADDRESS + "must be an address .* schemes: grpc,"),
        (MINIMAL.replace("//127", "//user:pass@127"), ADDRESS + ".*token_file"),
        (MINIMAL.replace(":7470", ""), ADDRESS + "must be grpc://host:port and nothing more$"),
        (MINIMAL.replace("127.0.0.1", "[::1"), ADDRESS + "must be an address"),
        (MINIMAL.replace("127.0.0.1", "127.0 .0.1"), ADDRESS + "must be an address"),
        (MINIMAL.replace("grpc://127.0.0.1:7470", '"grpc://127.0.0.1:7470\\n"'), ADDRESS + "must be an address"),
        (MINIMAL.replace("7470", "99999"), ADDRESS + "must be an address"),
        (MINIMAL.replace("rag-dense", "Rag_Dense"), r"gateway.yaml:2: systems\[0\].name: must begin with a-z or 0-9"),
        (MINIMAL.replace("rag-dense", "5"), r"gateway.yaml:2: systems\[0\].name: must be text; put it in quotes$"),
        ("systems:\n  - name: a\n", r"gateway.yaml:2: systems\[0\].address: is missing; give it a value$"),
        ("systems: [5]\n", r"gateway.yaml:1: systems\[0\]: must be a mapping of fields to values$"),
        ("systems: {a: b}\n", "gateway.yaml:1: systems: must be a list, with a - before each entry$"),
        ("systems: []\n", "gateway.yaml:1: systems: must list at least one system$"),
        ("listen: {}\n", "gateway.yaml:1: systems: is missing; give it a value$"),
        ("systems: &a [*a]\n", r"gateway.yaml:1: systems\[0\]: must be a mapping"),
        (MINIMAL + "x: &x {deadlines: 1}\nlimits:\n  <<: *x\n", "gateway.yaml:6: limits.deadlines: is not known here"),
        (MINIMAL + "audit_file: no/such/folder/x\n", "gateway.yaml:4: audit_file: there is no folder"),
        (MINIMAL + "telemetry: {sample_ratio: 2}\n", "gateway.yaml:4: telemetry.sample_ratio: must be at most 1$"),
        (MINIMAL + "telemetry: {otlp_endpoint: x}\n", "gateway.yaml:4: telemetry.otlp_endpoint: must be an address"),
        (
            MINIMAL + "space_key:\n  file: gateway.yaml\n  fingerprints:\n    1: abc\n",
            r"gateway.yaml:7: space_key.fingerprints\[1\]: must be sha256: and 64 hexadecimal digits",
        ),
        (
            MINIMAL + f"space_key:\n  file: gateway.yaml\n  fingerprints:\n    v1: {FINGERPRINT}\n",
            "gateway.yaml:7: space_key.fingerprints.v1: as a name, must be a whole number",
        ),
        (
            MINIMAL + f"space_key:\n  file: gateway.yaml\n  fingerprints:\n    2: {FINGERPRINT}\n",
            r"gateway.yaml:6: space_key.fingerprints: lacks version 1, which systems\[0\] \(rag-dense\) uses",
        ),
        ("- a\n", "gateway.yaml:1: must be a mapping"),
        ("", "gateway.yaml:1: must be a mapping"),
        ("a: [\n", "gateway.yaml:2: is not YAML; look at column 1"),
        ("a: 1\n---\nb: 1\n", "gateway.yaml:2: is not YAML; look at column 1"),
        ("a: 1\nb: \x07\n", "gateway.yaml:2: holds a character that YAML does not allow"),
        ("a: 1\nb: 2024-99-99\n", "gateway.yaml:2: has a value that YAML cannot read"),
        ("a: 1\nb: !!timestamp x\n", "gateway.yaml:2: has a value that YAML cannot read"),
        ("a: 1\n? [b]\n: 1\n", "gateway.yaml:2: has a list or a mapping where a name must be"),
        (MINIMAL + "drain_s: 1\ndrain_s: 2\n", "gateway.yaml:5: drain_s is given twice"),
        (MINIMAL + "    queue: 1\n    queue: 2\n", "gateway.yaml:5: queue is given twice"),
    ],
)
def test_a_mistake_names_its_line_and_field(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load(tmp_path, text)


def test_a_file_that_is_no_text_and_one_that_is_not_there_are_told(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"gateway.yaml:2: is not UTF-8 text"):
        load_config(tmp_path / "gateway.yaml")
    with pytest.raises(ConfigError, match=r"nothing.yaml: cannot be read: No such file"):
        load_config(tmp_path / "nothing.yaml")


def fields_of(section: type[Section], path: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """Where each field of a whole configuration stands, the sections too."""
    for name, field in section.model_fields.items():
        yield (*path, name)
        kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isclass(kind)]
        inner = next((kind for kind in kinds if issubclass(kind, Section)), None)
        if inner is not None:
            yield from fields_of(inner, (*path, name, 0) if name == "systems" else (*path, name))


FIELDS = list(fields_of(Config))
# One of each kind of value that YAML has, in and out of all bounds.
VALUES: list[Any] = [None, True, -1, 0, 1, 10**12, 0.5, -0.5, 1e12, math.inf, math.nan, "", "x", "a\nb", "é", "5"]
VALUES += [date(2024, 1, 1), b"x", [], ["x"], [None], [[]], {}, {"x": "y"}, {1: 2}, {None: None}, {"": {}}]


@pytest.mark.parametrize("field", FIELDS, ids=field_name)
def test_whatever_a_field_holds_is_taken_or_refused_in_our_words(tmp_path: Path, field: tuple[int | str, ...]) -> None:
    refused = 0
    for value in VALUES:
        content: Any = value
        for part in reversed(field):
            content = [content] if isinstance(part, int) else {part: content}
        path = tmp_path / "gateway.yaml"
        path.write_text(yaml.safe_dump(content))
        try:
            load_config(path)
        except ConfigError as mistakes:
            for line in str(mistakes).splitlines():
                assert OUR_WORDS.fullmatch(line.removeprefix(str(tmp_path))), line
                refused += field_name(field) in line
    assert refused > 3, "values that no field takes are among them"


OUR_WORDS = re.compile(
    r"/gateway\.yaml:\d+: \S.*: "
    r"(?:as a name, )?(?:must (?:be|begin|list) .+|needs .+|lacks .+|is missing; .+|is not known here; .+"
    r"|there is no (?:file|folder) .+|.+ is not host:port, .+|is no header's name: .+|cert_file and key_file go .+)"
)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, MINIMAL + "    queue: -1\n    concurrency: none\n")
    assert len(str(refused.value).splitlines()) == 2


def test_a_wrong_value_is_not_repeated_when_it_may_be_a_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, MINIMAL + "    token: hunter2\n")
    assert "hunter2" not in str(refused.value)


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
    assert load(tmp_path, MINIMAL + f"listen: {{grpc: {grpc}}}\n").open_face == (None if loopback else "grpc")


def test_a_name_that_begins_like_a_loopback_address_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, MINIMAL + "listen: {http: 127.0.0.1.example.org:1}\n").open_face == "http"
