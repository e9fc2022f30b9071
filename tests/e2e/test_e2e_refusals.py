"""What a caller does wrong, and what is dead behind the gateway: the same reason and sentence over gRPC and HTTP."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memdock.errors import MAX_MESSAGE_BYTES
from memdock.service import METHODS
from support.command_line import PROTO, BufCurl, Curl, Said, curl_missing, refusal
from support.processes import wait_until
from support.whole_stack import DENSE, HYBRID, WholeStack

pytestmark = pytest.mark.skipif(curl_missing(), reason="curl is not installed")

TURN = {"turn_id": "t1", "session_id": "s1", "role": "user", "text": "wrongtypedword is not to be stored"}


class Caller:
    """Makes one call over both faces."""

    def __init__(self, stack: WholeStack, key: str) -> None:
        self.over_http = Curl(url=stack.http_url, key=key)
        self.over_grpc = BufCurl(address=stack.grpc_url.removeprefix("grpc://"), key=key)

    def call(self, method: str, **request: Any) -> list[Said]:
        return [client.call(METHODS[method], request) for client in (self.over_http, self.over_grpc)]

    def refused(self, method: str, **request: Any) -> tuple[str, str]:
        """Reason and sentence, which are the same on both faces and hold no trace."""
        first, second = map(refusal, self.call(method, **request))
        assert first == second
        assert "Traceback" not in first[1]
        assert len(first[1].encode()) <= MAX_MESSAGE_BYTES
        return first


@pytest.fixture
def caller(stack: WholeStack) -> Caller:
    return Caller(stack, stack.key)


@pytest.fixture(autouse=True)
def quiet_logs(stack: WholeStack) -> Iterator[None]:
    """No trace in any log, whatever the test did."""
    yield
    for process in (stack.gateway, *(adapter.process for adapter in stack.adapters.values())):
        assert "Traceback" not in process.log
        assert "wrongtypedword" not in process.log


def test_an_unknown_system(caller: Caller) -> None:
    reason, sentence = caller.refused("Retrieve", system="no-such", space_id="x", query="q")
    assert (reason, "ListSystems" in sentence) == ("SYSTEM_NOT_FOUND", True)


@pytest.mark.parametrize(
    ("key", "reason", "sentence"),
    [
        ("", "CREDENTIAL_MISSING", "send the header Authorization: Bearer <key>"),
        ("not-a-key", "CREDENTIAL_INVALID", "the key is not one that is valid here"),
        (f"mdk_0123456789_{'0' * 64}", "CREDENTIAL_INVALID", "the key is not one that is valid here"),
    ],
)
def test_no_key_or_a_wrong_one(stack: WholeStack, key: str, reason: str, sentence: str) -> None:
    assert Caller(stack, key).refused("Reset", system=HYBRID, space_id="x") == (reason, sentence)


def test_an_expired_key(stack: WholeStack) -> None:
    key = stack.new_key("--lifetime", "1s")
    caller = Caller(stack, key)

    def expired() -> bool:
        # Unknown until the gateway has read it, good until its second is over.
        said = caller.over_http.call(METHODS["ListSystems"], {})
        return said.status != 200 and refusal(said)[0] == "CREDENTIAL_EXPIRED"

    wait_until(expired, 10, "the key to expire")
    _, sentence = caller.refused("ListSystems")
    assert f"the key {key.split('_')[1]} expired at 2" in sentence


def test_a_key_of_other_spaces_and_calls(stack: WholeStack) -> None:
    flags = ["--space", "mine-*", "--call", "Retrieve", "--call", "ListTurns", "--system", HYBRID]
    caller = Caller(stack, stack.new_key(*flags))
    wait_until(lambda: caller.call("ListTurns", system=HYBRID, space_id="mine-1")[0].status == 200, 10, "the new key")
    assert all(said.status in (0, 200) for said in caller.call("Retrieve", system=HYBRID, space_id="mine-1", query="q"))
    assert caller.refused("Retrieve", system=HYBRID, space_id="theirs", query="q")[0] == "SPACE_FORBIDDEN"
    assert caller.refused("Reset", system=HYBRID, space_id="mine-1")[0] == "CALL_FORBIDDEN"
    assert caller.refused("Retrieve", system=DENSE, space_id="mine-1", query="q")[0] == "SYSTEM_FORBIDDEN"


def test_a_typing_error_in_a_field(stack: WholeStack, caller: Caller, tmp_path: Path) -> None:
    names = {"system": HYBRID, "space_id": "typo"}
    wrong: Mapping[str, Any] = {**names, "turns": [{**TURN, "txet": "hello"}]}
    said = caller.over_http.call(METHODS["AddTurns"], wrong)
    assert refusal(said) == ("UNKNOWN_FIELD", "turns[0].txet: is not a field of the protocol")
    assert [error["field"] for error in said.content["errors"]] == ["turns[0].txet"]
    # A client with our .proto cannot even write it ...
    refused_by_client = caller.over_grpc.call(METHODS["AddTurns"], wrong)
    assert refused_by_client.status == 1
    assert 'unknown field "txet"' in refused_by_client.errors
    # ... and one with another .proto is told the number, which is all that travels.
    client = BufCurl(address=caller.over_grpc.address, key=stack.key, schema=_other_contract(tmp_path))
    reason, sentence = refusal(client.call(METHODS["AddTurns"], wrong))
    assert (reason, "turns[0]" in sentence, "99" in sentence) == ("UNKNOWN_FIELD", True, True)
    assert caller.over_http.call(METHODS["ListTurns"], names).content["turns"] == []
    assert stack.rows_that_hold(["wrongtypedword"]) == []


def _other_contract(folder: Path) -> Path:
    """Our .proto with a field in Turn that does not exist."""
    shutil.copytree(PROTO / "memdock" / "v1", folder / "memdock" / "v1", ignore=shutil.ignore_patterns("*.py*"))
    shutil.copy(PROTO / "buf.yaml", folder)
    file = folder / "memdock" / "v1" / "memory.proto"
    text, field = file.read_text(), "  string turn_id = 1;\n  // The session"
    assert text.count(field) == 1
    file.write_text(text.replace(field, f"  string txet = 99;\n{field}"))
    return folder


@contextmanager
def dead(stack: WholeStack, system: str) -> Iterator[None]:
    process = stack.adapters[system].process
    process.kill()
    try:
        yield
    finally:
        process.start()


def test_a_dead_adapter(stack: WholeStack, caller: Caller) -> None:
    names = {"system": HYBRID, "space_id": "dead-adapter"}
    assert caller.over_http.call(METHODS["AddTurns"], {**names, "turns": [TURN]}).status == 200
    assert _ready(caller) == {HYBRID: True, DENSE: True}
    with dead(stack, HYBRID):
        assert caller.refused("Retrieve", **names, query="q") == (
            "ADAPTER_UNREACHABLE",
            f"{HYBRID}: cannot be reached: nothing answers there",
        )
        assert all(said.status in (0, 200) for said in caller.call("Retrieve", **{**names, "system": DENSE}, query="q"))
        wait_until(lambda: _ready(caller) == {HYBRID: False, DENSE: True}, 5, "readiness tells it")
        assert caller.over_http.send("GET", "/livez").status == 200
    wait_until(lambda: all(said.status in (0, 200) for said in caller.call("ListTurns", **names)), 5, "it is back")
    assert caller.over_http.call(METHODS["ListTurns"], names).content["turns"][0]["turn_id"] == "t1"
    wait_until(lambda: _ready(caller) == {HYBRID: True, DENSE: True}, 5, "readiness tells that too")


def _ready(caller: Caller) -> Any:
    return caller.over_http.send("GET", "/readyz").content["systems"]
