"""What a meter's configuration file may say, and how it is told what is wrong."""

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from memdock_meter.config import read_config, secret, system_keys
from memdock_meter.prices import read_prices
from memdock_meter.problems import ConfigError
from memdock_meter.upstream import retry_after_s

GOOD: dict[str, Any] = {
    "upstreams": {"models": {"url": "https://models.example/v1/", "key_file": "models.key"}},
    "systems": {"a": {"chat": "models"}},
}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "meter.yaml"
    path.write_text(yaml.safe_dump(GOOD | changes))
    return path


def test_paths_count_from_the_files_folder(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, prices="p.yaml"), listen="127.0.0.1:1")
    assert config.upstreams["models"].url == "https://models.example/v1"
    assert config.upstreams["models"].key_file == tmp_path / "models.key"
    assert (config.store, config.prices) == (tmp_path / "meter.sqlite", tmp_path / "p.yaml")
    assert config.listen == "127.0.0.1:1"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"systems": {}}, "systems: "),
        (
            {"systems": {"a": {"chat": "others"}}},
            "systems.a.chat names 'others', which is no upstream: known are models",
        ),
        ({"systems": {"a": {"chat": "models", "budget": 1}}}, "systems.a.budget needs prices"),
        ({"systems": {"a": {"chat": "models", "budgte": 1}}}, "systems.a.budgte: Extra inputs"),
        ({"systems": {"a b": {"chat": "models"}}}, "systems.a b."),
        ({"upstreams": {"models": {"url": "models.example"}}}, "upstreams.models.url: Value error, give an address"),
        ({"upstreams": {"models": {"url": "http://"}}}, "upstreams.models.url: Value error, give an address"),
        ({"upstreams": {"models": {"url": "https://:80/v1"}}}, "upstreams.models.url: Value error, give an address"),
        ({"upstreams": {"models": {"url": "http://a b/v1"}}}, "upstreams.models.url: Value error, give an address"),
        ({"upstreams": {"models": {"url": "http://x:65536"}}}, "upstreams.models.url: Value error, Port out of range"),
        ({"upstreams": {"models": {"url": "http://x", "tries": 0}}}, "upstreams.models.tries: "),
        ({"upstreams": {"models": {"url": "http://x", "timeout_s": math.nan}}}, "upstreams.models.timeout_s: "),
        ({"systems": {"a": {"budget": math.inf}}}, "systems.a.budget: Input should be a finite number"),
        ({"systems": {"a": {"budget": math.nan}}}, "systems.a.budget: Input should be a finite number"),
        ({"mode": "recrod"}, "mode: Input should be 'live', 'record' or 'replay'"),
        ({"listen": "7480"}, "listen: give HOST:PORT, not '7480'"),
        ({"listen": "0.0.0.0:7480"}, "systems.a has no key_file, and 0.0.0.0:7480 can be reached by others"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(written(tmp_path, **changes))
    assert said in str(refused.value)


@pytest.mark.parametrize("listen", [None, "127.0.0.1:1"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- upstreams", "it must be a mapping of fields to values, not a list"),
        ("upstreams", "it must be a mapping of fields to values, not a str"),
        ("", "upstreams: Field required"),
        ("1: 2", "upstreams: Field required"),
        ("listen: 2026-13-45", "it holds a value that YAML cannot read"),
        ("[" * 5000, "its brackets stand too deep"),
        ("systems:\n  a: {chat: x}\n  b: {chat: x}\n  a: {chat: y}", "line 4: a is given twice: keep one"),
    ],
)
def test_a_file_that_is_no_mapping_of_fields_is_told_in_a_sentence(
    tmp_path: Path, listen: str | None, content: str, said: str
) -> None:
    path = tmp_path / "meter.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as refused:
        read_config(path, listen=listen)
    assert str(refused.value).startswith(f"{path}: {said}")


def test_what_comes_by_a_merge_may_be_said_anew(tmp_path: Path) -> None:
    path = tmp_path / "meter.yaml"
    path.write_text(
        "upstreams: {m: {url: 'http://x'}}\n"
        "systems: {a: &a {chat: m, concurrency: 1}, b: &b {<<: *a, concurrency: 2}, c: {<<: *b, concurrency: 3}}\n"
    )
    assert [each.concurrency for each in read_config(path).systems.values()] == [1, 2, 3]


def test_a_model_with_two_prices_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    price = "{input: 1, output: 1}"
    path.write_text(f"date: 2026-01-01\ncurrency: USD\nmodels:\n  m: {price}\n  m: {price}\n")
    with pytest.raises(ConfigError, match=r"prices\.yaml: line 5: m is given twice"):
        read_prices(path)


def test_systems_with_equal_keys_are_refused_by_both_names(tmp_path: Path) -> None:
    for name, key in (("a", "one"), ("b", "another"), ("c", "one\n")):
        (tmp_path / f"{name}.key").write_text(key)
    systems = {name: {"chat": "models", "key_file": f"{name}.key"} for name in "ab"} | {"d": {}, "e": {}}
    keys = system_keys(read_config(written(tmp_path, systems=systems)))
    assert keys == {"a": "one", "b": "another", "d": "", "e": ""}
    systems["c"] = {"chat": "models", "key_file": "c.key"}
    with pytest.raises(ConfigError, match=r"^systems\.a and systems\.c have the same key \(.*a\.key, .*c\.key\)"):
        system_keys(read_config(written(tmp_path, systems=systems)))


def test_others_may_reach_systems_with_keys_or_on_a_trusted_network(tmp_path: Path) -> None:
    keyed = {"a": {"chat": "models", "key_file": "a.key"}}
    assert read_config(written(tmp_path, listen="0.0.0.0:7480", systems=keyed))
    assert read_config(written(tmp_path, listen="0.0.0.0:7480", trust_network=True))


@pytest.mark.parametrize("content", [b"", b"\n", "ключ".encode(), b"two\nlines", b"\xff"])
def test_a_key_that_no_header_can_carry_is_refused_by_its_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.key").write_bytes(content)
    with pytest.raises(ConfigError, match=r"a\.key: "):
        secret(tmp_path / "a.key")


def test_a_wait_is_read_in_all_its_forms() -> None:
    assert retry_after_s({"retry-after": "7"}) == 7
    assert retry_after_s({"retry-after": "0.5"}) == 0.5
    assert retry_after_s({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    later = datetime.now(UTC) + timedelta(seconds=90)
    assert retry_after_s({"retry-after": format_datetime(later, usegmt=True)}) == pytest.approx(90, abs=2)
    past = datetime.now(UTC) - timedelta(seconds=90)
    assert retry_after_s({"retry-after": format_datetime(past, usegmt=True)}) == 0
    assert retry_after_s({}) is None
    assert retry_after_s({"retry-after-ms": "inf", "retry-after": "7"}) == 7
    for garbage in ("soon", "inf", "nan", "-1", "1e400", "\u00b2", "9" * 400, "Mon, 01 Jan 0001 00:00:00 +2359"):
        assert retry_after_s({"retry-after": garbage}) in (None, 0), garbage
    assert retry_after_s({"retry-after": "inf"}) is None
