"""What a meter's configuration file may say, and how it is told what is wrong."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from memdock_meter.config import read_config, secret
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
        ({"upstreams": {"models": {"url": "http://x", "tries": 0}}}, "upstreams.models.tries: "),
        ({"mode": "recrod"}, "mode: Input should be 'live', 'record' or 'replay'"),
        ({"listen": "7480"}, "listen: give HOST:PORT, not '7480'"),
        ({"listen": "0.0.0.0:7480"}, "systems.a has no key_file, and 0.0.0.0:7480 can be reached by others"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(written(tmp_path, **changes))
    assert said in str(refused.value)


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
