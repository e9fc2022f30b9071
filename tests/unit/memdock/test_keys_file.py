"""The file of keys: whole, private, and refused by the name of what is wrong in it."""

import json
import stat
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memdock.key_file import KeyFileError, editing, read_keys
from memdock.keys import create_key, utc_now


def add_key(path: Path, **bindings: Any) -> str:
    fields = {"tenant": "acme", "systems": ["*"], "spaces": ["run-*"], "calls": ["Retrieve"], **bindings}
    with editing(path) as edited:
        key, credential = create_key(**fields, now=utc_now())
        edited.keys[key.key_id] = key
    return credential


def test_a_file_is_made_private_and_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    credential = add_key(path, lifetime=timedelta(days=9))
    (key,) = read_keys(path)
    assert (key.tenant, key.spaces, key.calls) == ("acme", ("run-*",), ("Retrieve",))
    assert key.expires is not None
    assert key.expires - key.created == timedelta(days=9)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert credential.rpartition("_")[2] not in path.read_text()
    assert [item.name for item in tmp_path.iterdir()] == ["keys.json"]


def test_an_edit_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    add_key(path)
    before = path.read_bytes()
    with pytest.raises(KeyFileError), editing(path) as edited:
        edited.find(edited.keys.popitem()[0])
    assert path.read_bytes() == before


def test_edits_at_once_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    threads = [threading.Thread(target=add_key, args=(path,)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_keys(path)) == 12


def test_a_wider_mode_is_narrowed_by_the_next_edit(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    add_key(path)
    path.chmod(0o644)
    add_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="there is no key 'x'"), editing(tmp_path / "keys.json") as edited:
        edited.find("x")


def changed(path: Path, **fields: Any) -> dict[str, Any]:
    document = json.loads(path.read_text())
    document["keys"][0].update(fields)
    return document  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tenant": ""}, "tenant must have"),
        ({"tenant": 5}, "tenant must be a string"),
        ({"systems": []}, "systems must not be empty"),
        ({"systems": ["rag-*"]}, "systems 'rag-*' is no system's name"),
        ({"spaces": ["a b"]}, "spaces 'a b' is no space_id"),
        ({"spaces": ["a*b"]}, "spaces 'a*b' is no space_id"),
        ({"spaces": "run-*"}, "spaces must be a list of strings"),
        ({"calls": ["retrieve"]}, "calls 'retrieve' is none of"),
        ({"created": "yesterday"}, "created must be a time with an offset"),
        ({"expires": "2030-01-01T00:00:00"}, "expires must be a time with an offset"),
        ({"key_id": "short"}, "key_id must be 10 of"),
        ({"secrets": []}, "secrets must be a list with an entry"),
        ({"secrets": [{"sha256": "ABC"}]}, "secrets[0].sha256 must be 64 hexadecimal digits"),
        ({"secrets": [{"secret": "x"}]}, "secrets[0] must have sha256"),
        ({"role": "admin"}, "role is not a field of a key"),
    ],
)
def test_a_wrong_entry_is_named_by_its_place_and_key(tmp_path: Path, fields: dict[str, Any], told: str) -> None:
    path = tmp_path / "keys.json"
    add_key(path)
    document = changed(path, **fields)
    path.write_text(json.dumps(document))
    with pytest.raises(KeyFileError) as caught:
        read_keys(path)
    assert f"keys[0] ({document['keys'][0]['key_id']}): " in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON: look at line 1"),
        ("[]", 'must be {"version": 1'),
        ('{"version": 2, "keys": []}', "version 2"),
        ('{"version": 1, "keys": [5]}', "keys[0]: entry must be an object"),
        ('{"version": 1, "keys": [{}]}', "is missing"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(KeyFileError) as caught:
        read_keys(path)
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


def test_a_key_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    add_key(path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({"version": 1, "keys": document["keys"] * 2}))
    with pytest.raises(KeyFileError, match="stands twice"):
        read_keys(path)


def test_a_file_that_is_not_there_is_told_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="memdock keys create"):
        read_keys(tmp_path / "keys.json")
    with pytest.raises(KeyFileError, match="cannot be written"), editing(tmp_path / "no" / "keys.json"):
        raise AssertionError("never entered")
