"""API keys from a file that changes while a program serves: whatever is in it, what was revoked ends."""

import asyncio
from pathlib import Path

import pytest

from memdock import callers as module
from memdock.callers import KeyFileCallers, keep_reloading
from memdock.errors import MemdockError
from support.gateways import ANYTHING, make_key

GARBAGE = [
    b"",
    b"{ half a fi",
    b"\xff",
    b"null",
    b"{}",
    b"[" * 100_000,
    b"1" * 5_000,
    b'{"version": 1, "keys": [null]}',
    b'{"version": 1, "keys": [{"key_id": []}]}',
    b'{"version": NaN, "keys": []}',
]


def reason(callers: KeyFileCallers, credential: str) -> str:
    try:
        callers.identify(credential)
    except MemdockError as refused:
        return refused.reason
    return "OK"


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: repr(garbage[:20]))
def test_a_file_that_is_none_changes_nothing_and_the_next_one_is_taken(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "keys.json"
    credential = make_key(tmp_path, **ANYTHING)
    callers = KeyFileCallers(path)
    good = path.read_bytes()
    path.write_bytes(garbage)
    callers.reload()
    assert reason(callers, credential) == "OK"
    path.write_bytes(good)
    second = make_key(tmp_path, **ANYTHING)
    callers.reload()
    assert (reason(callers, credential), reason(callers, second)) == ("OK", "OK")
    path.write_text('{"version": 1, "keys": []}')
    callers.reload()
    assert reason(callers, credential) == "CREDENTIAL_INVALID"


def test_a_file_that_is_away_changes_nothing_until_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    credential = make_key(tmp_path, **ANYTHING)
    callers = KeyFileCallers(path)
    path.rename(tmp_path / "away")
    callers.reload()
    assert reason(callers, credential) == "OK"
    path.write_text('{"version": 1, "keys": []}')
    callers.reload()
    assert reason(callers, credential) == "CREDENTIAL_INVALID"


async def test_a_reading_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    third = asyncio.Event()

    class Failing(KeyFileCallers):
        """Keys whose every reading is a bug."""

        def __init__(self) -> None:
            self.times = 0

        def reload(self) -> None:
            self.times += 1
            if self.times == 3:
                third.set()
            raise MemoryError

    monkeypatch.setattr(module, "RELOAD_EVERY_S", 0)
    reloading = asyncio.create_task(keep_reloading(Failing()))
    async with asyncio.timeout(5):
        await third.wait()
    reloading.cancel()
