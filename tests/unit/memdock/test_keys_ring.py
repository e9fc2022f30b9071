"""Keys: what one proves, what one may do, and how one is rotated."""

from datetime import UTC, datetime, timedelta

import pytest

from memdock.errors import PermissionDeniedError, UnauthenticatedError
from memdock.keys import Key, Keyring, create_key, rotate_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=30)


def made(**bindings: tuple[str, ...]) -> tuple[Key, str]:
    lifetime = None
    return create_key(
        tenant="acme",
        systems=bindings.get("systems", ("*",)),
        spaces=bindings.get("spaces", ("*",)),
        calls=bindings.get("calls", ("*",)),
        now=NOW,
        lifetime=lifetime,
    )


def reason_of(ring: Keyring, credential: str, now: datetime = NOW) -> str:
    with pytest.raises(UnauthenticatedError) as caught:
        ring.identify(credential, now)
    assert credential == "" or credential not in caught.value.message
    return caught.value.reason


def test_a_key_is_proven_by_its_credential_alone() -> None:
    key, credential = made()
    other, _ = made()
    ring = Keyring([other, key])
    assert ring.identify(credential, NOW) is key
    assert len(ring) == 2
    assert reason_of(ring, "") == "CREDENTIAL_MISSING"
    for wrong in (
        credential[:-1],
        credential + "0",
        credential.upper(),
        f"mdk_{other.key_id}_{credential.rpartition('_')[2]}",
        f"mdk_0123456789_{credential.rpartition('_')[2]}",
        "mdk_",
        "mdk__",
        "Bearer",
        f"mdk_{key.key_id}_",
        f"mdk_{key.key_id}_\udcff",
        "й" * 300,
    ):
        assert reason_of(ring, wrong) == "CREDENTIAL_INVALID"


def test_the_secret_has_256_bits_and_only_its_hash_is_kept() -> None:
    key, credential = made()
    secret = credential.rpartition("_")[2]
    assert len(bytes.fromhex(secret)) == 32
    assert credential == f"mdk_{key.key_id}_{secret}"
    assert secret not in repr(key)
    assert len({made()[1] for _ in range(50)}) == 50


def test_an_expired_key_is_told_so_only_to_who_proves_it() -> None:
    key, credential = create_key(
        tenant="t", systems=("*",), spaces=("*",), calls=("*",), now=NOW, lifetime=timedelta(days=1)
    )
    ring = Keyring([key])
    assert ring.identify(credential, NOW + timedelta(hours=23)) is key
    assert reason_of(ring, credential, NOW + timedelta(days=1)) == "CREDENTIAL_EXPIRED"
    assert reason_of(ring, f"mdk_{key.key_id}_wrong", LATER) == "CREDENTIAL_INVALID"


def test_a_rotated_key_keeps_its_old_secret_for_the_overlap() -> None:
    key, old = made()
    rotated, new = rotate_key(key, overlap=timedelta(hours=12), now=NOW)
    ring = Keyring([rotated])
    assert ring.identify(new, LATER) is rotated
    assert ring.identify(old, NOW + timedelta(hours=11)) is rotated
    assert reason_of(ring, old, NOW + timedelta(hours=12)) == "CREDENTIAL_EXPIRED"
    assert (rotated.key_id, rotated.tenant, rotated.created) == (key.key_id, key.tenant, key.created)


def test_a_second_rotation_never_lengthens_an_old_secret_and_drops_ended_ones() -> None:
    key, first = made()
    once, second = rotate_key(key, overlap=timedelta(hours=1), now=NOW)
    twice, _ = rotate_key(once, overlap=timedelta(hours=48), now=NOW + timedelta(minutes=30))
    assert len(twice.secrets) == 3
    ring = Keyring([twice])
    assert reason_of(ring, first, NOW + timedelta(hours=1)) == "CREDENTIAL_EXPIRED"
    assert ring.identify(second, NOW + timedelta(hours=40))
    thrice, _ = rotate_key(twice, overlap=timedelta(hours=1), now=NOW + timedelta(hours=2))
    assert reason_of(Keyring([thrice]), first, NOW + timedelta(hours=2)) == "CREDENTIAL_INVALID"


def test_without_an_overlap_the_old_secret_ends_at_once() -> None:
    key, old = made()
    rotated, _ = rotate_key(key, overlap=timedelta(0), now=NOW)
    assert reason_of(Keyring([rotated]), old) == "CREDENTIAL_INVALID"


@pytest.mark.parametrize(
    ("bindings", "asked", "reason"),
    [
        ({"calls": ("Retrieve",)}, {"call": "AddTurns"}, "CALL_FORBIDDEN"),
        ({"systems": ("rag-dense",)}, {"call": "Reset", "system": "rag-hybrid"}, "SYSTEM_FORBIDDEN"),
        ({"systems": ("rag-dense",)}, {"call": "Reset", "system": ""}, "SYSTEM_FORBIDDEN"),
        ({"spaces": ("anna",)}, {"call": "Reset", "system": "s", "space_id": "anna2"}, "SPACE_FORBIDDEN"),
        ({"spaces": ("run-*",)}, {"call": "Reset", "system": "s", "space_id": "run"}, "SPACE_FORBIDDEN"),
        ({"spaces": ("run-*",)}, {"call": "Reset", "system": "s", "space_id": "Run-1"}, "SPACE_FORBIDDEN"),
        ({"spaces": ()}, {"call": "Reset", "system": "s", "space_id": "a"}, "SPACE_FORBIDDEN"),
    ],
)
def test_what_a_key_may_not_do(bindings: dict[str, tuple[str, ...]], asked: dict[str, str], reason: str) -> None:
    key, _ = made(**bindings)
    with pytest.raises(PermissionDeniedError) as caught:
        key.allow(**asked)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("bindings", "asked"),
    [
        ({}, {"call": "Reset", "system": "s", "space_id": "a"}),
        ({"systems": (), "spaces": ()}, {"call": "ListSystems"}),
        ({"systems": ("a", "b"), "spaces": ()}, {"call": "Describe", "system": "b"}),
        ({"spaces": ("anna", "run-*")}, {"call": "Reset", "system": "s", "space_id": "anna"}),
        ({"spaces": ("anna", "run-*")}, {"call": "Reset", "system": "s", "space_id": "run-"}),
        ({"spaces": ("anna", "run-*")}, {"call": "Reset", "system": "s", "space_id": "run-1.x"}),
    ],
)
def test_what_a_key_may_do(bindings: dict[str, tuple[str, ...]], asked: dict[str, str]) -> None:
    made(**bindings)[0].allow(**asked)
