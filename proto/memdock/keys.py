"""API keys: what one may do, how one is checked, and the file that holds them.

A key is handed out once as `mdk_<key id>_<secret>`; the secret has 256 random bits, so its plain SHA-256 can stand in
the file (a slow hash protects weak secrets, and there are none). While a key is rotated its old secret stays valid for
a stated time.
"""

import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from memdock.errors import PermissionDeniedError, UnauthenticatedError

PREFIX = "mdk"
ANY = "*"
EVALUATION_CALLS = ("ReadRuns", "StartRuns", "EndRuns")
"""What a key may do at `memdock-eval serve`: look at runs, begin and resume them, cancel and remove them."""

_KEY_ID = re.compile(r"[a-z0-9]{10}")
_NO_HASH = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """One secret of a key: the SHA-256 of it, in hexadecimal, and the end of its time (`None`: the key's own)."""

    sha256: str
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a key may do.

    `systems` and `calls` hold names, or `*` alone for all; `spaces` hold ids, or beginnings of ids that end in `*`. A
    list that is empty allows nothing. `expires`: `None` for never.
    """

    key_id: str
    tenant: str
    systems: tuple[str, ...]
    spaces: tuple[str, ...]
    calls: tuple[str, ...]
    created: datetime
    expires: datetime | None = None
    secrets: tuple[Secret, ...] = ()

    def allow(self, *, call: str, system: str | None = None, space_id: str | None = None) -> None:
        """Returns when the key may do it; raises CALL_FORBIDDEN, SYSTEM_FORBIDDEN or SPACE_FORBIDDEN.

        `None`: the call names no system, or no space.
        """
        if not _matches(self.calls, call):
            raise PermissionDeniedError("CALL_FORBIDDEN", f"the key {self.key_id} may not call {call}")
        if system is not None and not _matches(self.systems, system):
            raise PermissionDeniedError("SYSTEM_FORBIDDEN", f"the key {self.key_id} may not use the system {system!r}")
        if space_id is not None and not _matches(self.spaces, space_id):
            raise PermissionDeniedError("SPACE_FORBIDDEN", f"the key {self.key_id} may not use this space")


class Keyring:
    """Finds the key that a credential proves."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys: Mapping[str, Key] = {key.key_id: key for key in keys}

    def __len__(self) -> int:
        return len(self._keys)

    def identify(self, credential: str, now: datetime) -> Key:
        """The key. Raises CREDENTIAL_MISSING, CREDENTIAL_INVALID or CREDENTIAL_EXPIRED.

        A key id that does not exist takes the same time, and gives the same answer, as a wrong secret.
        """
        if not credential:
            raise UnauthenticatedError("CREDENTIAL_MISSING", "send the header Authorization: Bearer <key>")
        key_id, secret = split_credential(credential)
        key = self._keys.get(key_id)
        proven = _proven(key.secrets if key else (), secret)
        if key is None or proven is None:
            raise UnauthenticatedError("CREDENTIAL_INVALID", "the key is not one that is valid here")
        for expires in (key.expires, proven.expires):
            if expires is not None and expires <= now:
                ended = expires.isoformat(timespec="seconds")
                raise UnauthenticatedError("CREDENTIAL_EXPIRED", f"the key {key_id} expired at {ended}")
        return key


def split_credential(credential: str) -> tuple[str, str]:
    """Key id and secret; two empty strings when the credential has another form."""
    prefix, _, rest = credential.partition("_")
    key_id, _, secret = rest.partition("_")
    return (key_id, secret) if prefix == PREFIX and _KEY_ID.fullmatch(key_id) and secret else ("", "")


def create_key(
    *,
    tenant: str,
    systems: Iterable[str],
    spaces: Iterable[str],
    calls: Iterable[str],
    now: datetime,
    lifetime: timedelta | None = None,
) -> tuple[Key, str]:
    """A new key, and the credential to hand out: it cannot be had again."""
    key_id = secrets.token_hex(5)
    secret, credential = _new_secret(key_id)
    key = Key(
        key_id=key_id,
        tenant=tenant,
        systems=tuple(systems),
        spaces=tuple(spaces),
        calls=tuple(calls),
        created=now,
        expires=None if lifetime is None else now + lifetime,
        secrets=(secret,),
    )
    return key, credential


def rotate_key(key: Key, *, overlap: timedelta, now: datetime) -> tuple[Key, str]:
    """The key with a new secret, and the credential to hand out; the old secrets end after `overlap` at the latest."""
    secret, credential = _new_secret(key.key_id)
    ends = now + overlap
    kept = tuple(
        replace(old, expires=ends if old.expires is None else min(old.expires, ends))
        for old in key.secrets
        if (old.expires is None or old.expires > now) and ends > now
    )
    return replace(key, secrets=(secret, *kept)), credential


def utc_now() -> datetime:
    """Now, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def _new_secret(key_id: str) -> tuple[Secret, str]:
    secret = secrets.token_hex(32)
    return Secret(sha256=_hash(secret)), f"{PREFIX}_{key_id}_{secret}"


def _hash(secret: str) -> str:
    return sha256(secret.encode(errors="replace")).hexdigest()


def _proven(known: Iterable[Secret], secret: str) -> Secret | None:
    given = _hash(secret)
    found = None
    for one in (*known, Secret(sha256=_NO_HASH)):  # no early end, and always at least one comparison
        if hmac.compare_digest(one.sha256, given):
            found = one
    return found


def _matches(patterns: Iterable[str], name: str) -> bool:
    # Asked several times a call: a loop costs a third of `any` over a generator.
    for pattern in patterns:  # noqa: SIM110
        if name.startswith(pattern[:-1]) if pattern.endswith(ANY) else name == pattern:
            return True
    return False
