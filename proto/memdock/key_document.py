"""The JSON of the file of API keys: reading and writing its entries, each refused by name when it is wrong."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from memdock.check import ID, SYSTEM
from memdock.keys import ANY, EVALUATION_CALLS, Key, Secret
from memdock.service import METHODS

VERSION = 1
CALLS = (*METHODS, *EVALUATION_CALLS)
KEY_FIELDS = ("key_id", "tenant", "systems", "spaces", "calls", "created", "expires", "secrets")

T = TypeVar("T")

_KEY_ID = re.compile(r"[a-z0-9]{10}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def parse_keys(document: Any) -> tuple[Key, ...]:
    """The keys of a file's JSON. Raises `ValueError` naming the entry."""
    if type(document) is not dict or set(document) != {"version", "keys"} or type(document["keys"]) is not list:
        raise ValueError('must be {"version": 1, "keys": [...]}')
    if document["version"] != VERSION:
        raise ValueError(f"is of version {document['version']!r}; this program reads version {VERSION}")
    keys: dict[str, Key] = {}
    for index, entry in enumerate(document["keys"]):
        try:
            key = _parse_key(entry)
        except ValueError as problem:
            raise ValueError(f"{_entry_name(entry, index)}: {problem}") from None
        if key.key_id in keys:
            raise ValueError(f"keys[{index}]: the key_id {key.key_id} stands twice")
        keys[key.key_id] = key
    return tuple(keys.values())


def render_keys(keys: Iterable[Key]) -> str:
    """The file's text."""
    return json.dumps({"version": VERSION, "keys": [_key_document(key) for key in keys]}, indent=2) + "\n"


def check_bindings(key: Key) -> None:
    """Raises `ValueError` naming the binding of a key that cannot mean anything."""
    _check(ID.fullmatch(key.tenant), "tenant", "must have the form of a space_id")
    for name in ("systems", "spaces", "calls"):
        _check(getattr(key, name), name, f'must not be empty; ["{ANY}"] allows all')
    for system in key.systems:
        _check(system == ANY or SYSTEM.fullmatch(system), "systems", f"{system!r} is no system's name, nor {ANY}")
    for space in key.spaces:
        whole = space.removesuffix(ANY)
        _check(space == ANY or ID.fullmatch(whole), "spaces", f"{space!r} is no space_id, nor a beginning with {ANY}")
    for call in key.calls:
        _check(call == ANY or call in CALLS, "calls", f"{call!r} is none of {', '.join(CALLS)}, nor {ANY}")


def _parse_key(entry: Any) -> Key:
    _check(type(entry) is dict, "entry", "must be an object")
    unknown, missing = set(entry) - set(KEY_FIELDS), set(KEY_FIELDS) - {"expires"} - set(entry)
    _check(not unknown, ", ".join(sorted(unknown)), "is not a field of a key")
    _check(not missing, ", ".join(sorted(missing)), "is missing")
    _check(type(entry["key_id"]) is str and _KEY_ID.fullmatch(entry["key_id"]), "key_id", "must be 10 of a-z 0-9")
    _check(type(entry["secrets"]) is list and entry["secrets"], "secrets", "must be a list with an entry")
    key = Key(
        key_id=entry["key_id"],
        tenant=_parse_text(entry["tenant"], "tenant"),
        systems=_parse_texts(entry["systems"], "systems"),
        spaces=_parse_texts(entry["spaces"], "spaces"),
        calls=_parse_texts(entry["calls"], "calls"),
        created=_parse_time(entry["created"], "created"),
        expires=_optional(_parse_time, entry.get("expires"), "expires"),
        secrets=tuple(_parse_secret(secret, f"secrets[{index}]") for index, secret in enumerate(entry["secrets"])),
    )
    check_bindings(key)
    return key


def _parse_secret(entry: Any, field: str) -> Secret:
    _check(type(entry) is dict and "sha256" in entry and set(entry) <= {"sha256", "expires"}, field, "must have sha256")
    digest = _parse_text(entry["sha256"], f"{field}.sha256")
    _check(_SHA256.fullmatch(digest), f"{field}.sha256", "must be 64 hexadecimal digits")
    return Secret(sha256=digest, expires=_optional(_parse_time, entry.get("expires"), f"{field}.expires"))


def _parse_text(value: Any, field: str) -> str:
    _check(type(value) is str, field, "must be a string")
    return str(value)


def _parse_texts(value: Any, field: str) -> tuple[str, ...]:
    _check(type(value) is list and all(type(item) is str for item in value), field, "must be a list of strings")
    return tuple(value)


def _parse_time(value: Any, field: str) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        time = None
    _check(
        time is not None and time.tzinfo, field, 'must be a time with an offset, such as "2030-01-01T00:00:00+00:00"'
    )
    assert time is not None
    return time


def _optional(parse: Callable[[Any, str], T], value: Any, field: str) -> T | None:
    return None if value is None else parse(value, field)


def _check(holds: object, field: str, description: str) -> None:
    if not holds:
        raise ValueError(f"{field} {description}")


def _entry_name(entry: Any, index: int) -> str:
    key_id = entry.get("key_id") if type(entry) is dict else None
    return f"keys[{index}] ({key_id})" if type(key_id) is str else f"keys[{index}]"


def _key_document(key: Key) -> Mapping[str, Any]:
    return {
        "key_id": key.key_id,
        "tenant": key.tenant,
        "systems": key.systems,
        "spaces": key.spaces,
        "calls": key.calls,
        "created": key.created.isoformat(),
        "expires": key.expires and key.expires.isoformat(),
        "secrets": [
            {"sha256": secret.sha256, "expires": secret.expires and secret.expires.isoformat()}
            for secret in key.secrets
        ],
    }
