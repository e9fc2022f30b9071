"""Who calls: the key behind a credential, from a file that may change while a program serves."""

import asyncio
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import structlog

from memdock.key_file import KeyFileError, read_keys
from memdock.keys import ANY, Key, Keyring
from memdock.log import log_fault

RELOAD_EVERY_S = 1.0

DEVELOPMENT_KEY = Key(
    key_id="",
    tenant="development",
    systems=(ANY,),
    spaces=(ANY,),
    calls=(ANY,),
    created=datetime.min.replace(tzinfo=UTC),
)


class Callers(Protocol):
    """Knows callers by their credentials."""

    def identify(self, credential: str) -> Key:
        """The caller's key; raises `memdock.errors.UnauthenticatedError`."""


class Anybody:
    """For development: whoever calls is the same tenant and may do everything."""

    def identify(self, credential: str) -> Key:  # noqa: ARG002 - nobody is asked for one
        """The one key there is."""
        return DEVELOPMENT_KEY


class KeyFileCallers:
    """The keys of a file. `reload` takes a changed file; one that cannot be read leaves the keys as they were."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = _stamp(path)
        self._keyring = Keyring(read_keys(path))
        self._proven: dict[bytes, Key] = {}

    def identify(self, credential: str) -> Key:
        """The key that the credential proves. One that was good is not proven again until the next `reload`."""
        digest = sha256(credential.encode()).digest()
        key = self._proven.get(digest)
        if key is None:
            key = self._keyring.identify(credential, datetime.now(UTC))
            self._proven[digest] = key
        return key

    def reload(self) -> None:
        """Reads the file again if it has changed; to be called every second, so that an expired key ends with it."""
        self._proven.clear()
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._keyring = Keyring(read_keys(self._path))
        except KeyFileError as problem:
            structlog.get_logger().error("keys_not_reloaded", problem=str(problem))
        else:
            structlog.get_logger().info("keys_reloaded", keys=len(self._keyring))


async def keep_reloading(callers: KeyFileCallers) -> None:
    """Takes changes of the file within `RELOAD_EVERY_S`, until it is cancelled."""
    while True:
        await asyncio.sleep(RELOAD_EVERY_S)
        try:
            callers.reload()
        except Exception as fault:  # noqa: BLE001  a key that is revoked must end, whatever one reading comes to
            log_fault("keys_not_reloaded", fault)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Changes whenever the file does; zeros while it is away."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_mtime_ns, status.st_size
