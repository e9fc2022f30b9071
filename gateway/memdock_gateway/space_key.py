"""Names of spaces as adapters see them: a keyed hash of tenant, system and space.

An adapter cannot tell whose a space is, and two tenants never meet in one. The key has versions; each system uses one
of them, because a space written under one version has another name under the next. The configuration holds the
fingerprint of each version, so that a lost or exchanged key stops the start instead of showing every space as empty.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from memdock.whole_file import write_whole

SECRET_BYTES = 32
CACHED_NAMES = 65_536

_HEADING = """\
# The names of spaces at the memory systems are made with these keys. Keep a copy in a safe place: without its key a
# space cannot be found again. `memdock-gateway rotate-space-key` adds a version; never edit or remove one in use.
"""


class SpaceKeyError(ValueError):
    """The file's keys cannot be used; the message names the file and the entry, and says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceKey:
    """One version of the key, 32 random bytes."""

    version: int
    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """`sha256:` and 64 hexadecimal digits; tells nothing about the secret."""
        return "sha256:" + hmac.new(self.secret, b"memdock space key fingerprint", hashlib.sha256).hexdigest()


DEVELOPMENT_KEY = SpaceKey(version=1, secret=hashlib.sha256(b"known to everybody").digest())


class SpaceNames:
    """The names of one system's spaces at its adapter."""

    def __init__(self, key: SpaceKey, system: str) -> None:
        def name(tenant: str, space_id: str) -> str:
            parts = (part.encode() for part in (tenant, system, space_id))
            message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
            return base64.b32encode(hmac.digest(key.secret, message, "sha256")).decode().rstrip("=")

        # The same few spaces are asked for again and again; the bound keeps a scan over many from growing the process.
        self._name = lru_cache(maxsize=CACHED_NAMES)(name)

    def name(self, tenant: str, space_id: str) -> str:
        """base32(HMAC-SHA256) over the length-prefixed tenant, system and space: 52 characters of A-Z and 2-7."""
        return self._name(tenant, space_id)


def new_space_key(version: int) -> SpaceKey:
    """A key of this version from the system's random source."""
    return SpaceKey(version=version, secret=secrets.token_bytes(SECRET_BYTES))


def write_space_keys(path: Path, keys: Mapping[int, SpaceKey]) -> None:
    """Replaces the file in one step; only its owner can read it."""
    entries = [
        {"version": key.version, "secret": base64.b64encode(key.secret).decode()}
        for key in sorted(keys.values(), key=lambda key: key.version)
    ]
    write_whole(path, _HEADING + yaml.safe_dump({"keys": entries}, sort_keys=False), private=True)


def read_space_keys(path: Path) -> dict[int, SpaceKey]:
    """Every version in the file. Raises `SpaceKeyError`."""
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except OSError as problem:
        raise SpaceKeyError(f"{path}: cannot be read: {problem.strerror}") from None
    except (yaml.YAMLError, ValueError):
        raise SpaceKeyError(f"{path}: is not YAML; restore the file from its copy") from None
    entries = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise SpaceKeyError(f"{path}: has no list `keys`; `memdock-gateway init` makes such a file")
    keys: dict[int, SpaceKey] = {}
    for index, entry in enumerate(entries):
        key = _read_entry(path, index, entry)
        if key.version in keys:
            raise SpaceKeyError(f"{path}: keys[{index}].version: version {key.version} is there twice")
        keys[key.version] = key
    return keys


def _read_entry(path: Path, index: int, entry: Any) -> SpaceKey:
    if not isinstance(entry, dict) or set(entry) != {"version", "secret"}:
        raise SpaceKeyError(f"{path}: keys[{index}] must have `version` and `secret`, nothing else")
    version = entry["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SpaceKeyError(f"{path}: keys[{index}].version must be a whole number from 1")
    try:
        secret = base64.b64decode(str(entry["secret"]), validate=True)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise SpaceKeyError(f"{path}: keys[{index}].secret is not the base64 of {SECRET_BYTES} bytes")
    return SpaceKey(version=version, secret=secret)


def fitting_keys(path: Path, fingerprints: Mapping[int, str]) -> dict[int, SpaceKey]:
    """The keys of the file by version, each checked against its fingerprint. Raises `SpaceKeyError`."""
    keys = read_space_keys(path)
    for version, fingerprint in fingerprints.items():
        key = keys.get(version)
        if key is None:
            raise SpaceKeyError(
                f"{path}: version {version} of the space key is missing; its spaces could not be found. "
                "Restore the file from its copy"
            )
        if not hmac.compare_digest(key.fingerprint, fingerprint):
            raise SpaceKeyError(
                f"{path}: version {version} of the space key is not the one of space_key.fingerprints "
                f"(it is {key.fingerprint}); its spaces could not be found. Restore the file from its copy"
            )
    return keys
