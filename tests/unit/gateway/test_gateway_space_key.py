"""Names of spaces at adapters, and what happens when their key is lost or changed."""

import base64
import hashlib
import hmac
import os
import re
import stat
from pathlib import Path

import pytest

from memdock_gateway.space_key import (
    SpaceKey,
    SpaceKeyError,
    SpaceNames,
    fitting_keys,
    new_space_key,
    read_space_keys,
    write_space_keys,
)

KEY = SpaceKey(version=1, secret=bytes(range(32)))


def test_the_name_is_the_documented_hash() -> None:
    message = b"\0\0\0\x04acme\0\0\0\x09rag-dense\0\0\0\x02s1"
    expected = base64.b32encode(hmac.new(KEY.secret, message, hashlib.sha256).digest()).decode().rstrip("=")
    assert SpaceNames(KEY, "rag-dense").name("acme", "s1") == expected


def test_the_name_is_a_space_id_of_the_protocol() -> None:
    name = SpaceNames(KEY, "rag-dense").name("acme", "user~1")
    assert re.fullmatch(r"[A-Z2-7]{52}", name)


def test_colliding_parts_have_different_names() -> None:
    triples = [("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("", "a", "bc"), ("A", "b", "c"), ("a", "b", "C")]
    names = {SpaceNames(KEY, system).name(tenant, space) for tenant, system, space in triples}
    assert len(names) == len(triples)


def test_file_comes_back_as_written_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "space-keys.yaml"
    keys = {1: new_space_key(1), 2: new_space_key(2)}
    write_space_keys(path, keys)
    assert read_space_keys(path) == keys
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_fitting_key_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "space-keys.yaml"
    write_space_keys(path, {1: KEY})
    assert fitting_keys(path, {1: KEY.fingerprint}) == {1: KEY}


def test_another_key_under_the_same_version_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "space-keys.yaml"
    write_space_keys(path, {1: new_space_key(1)})
    with pytest.raises(SpaceKeyError, match="version 1 of the space key is not the one"):
        fitting_keys(path, {1: KEY.fingerprint})


def test_a_missing_version_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "space-keys.yaml"
    write_space_keys(path, {2: new_space_key(2)})
    with pytest.raises(SpaceKeyError, match="version 1 of the space key is missing"):
        fitting_keys(path, {1: KEY.fingerprint})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "no list `keys`"),
        ("keys: []", "no list `keys`"),
        ("keys: [1]", r"keys\[0\] must have"),
        ("keys: [{version: 0, secret: aa}]", r"keys\[0\].version must be a whole number"),
        ("keys: [{version: 1, secret: aa}]", r"keys\[0\].secret is not the base64 of 32 bytes"),
        ("keys: [{version: 1, secret: '%', more: 1}]", r"keys\[0\] must have"),
        ("keys: [", "is not YAML"),
    ],
)
def test_a_damaged_file_names_the_place(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "space-keys.yaml"
    path.write_text(content)
    with pytest.raises(SpaceKeyError, match=sentence):
        read_space_keys(path)


def test_neither_the_key_nor_its_fingerprint_tells_the_secret() -> None:
    assert KEY.secret.hex() not in KEY.fingerprint
    assert "secret" not in repr(KEY)
