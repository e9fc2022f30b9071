"""The command `memdock` as a user types it, over both faces of a real server."""

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from memdock.cli.app import run
from memdock.errors import error
from memdock.key_file import read_keys
from memdock.keys import Keyring, utc_now
from memdock.server import ServeOptions, Server, require_token
from memdock.service import Call, Method
from memdock.sqlite_ledger import SqliteLedger
from memdock.v1 import memory_pb2 as pb
from support.faces import ScriptedService, faces_of
from support.toys import ToySystem

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINES = (
    '{"turn_id": "t1", "session_id": "s1", "role": "user", "text": "I moved to Kazan.",'
    ' "time": "2024-05-01T09:30:00+03:00"}\n'
    "\n"
    '{"turnId": "t2", "sessionId": "s2", "role": "assistant", "text": "Kazan is fine."}\n'
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str


class Shell:
    """Types commands against one server."""

    def __init__(self, url: str, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._url = url
        self._capture = capture
        self._patch = patch

    async def __call__(self, *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> Ran:
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = await asyncio.to_thread(run, ["--url", self._url, *arguments], environment or {})
        out, err = self._capture.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    system = ToySystem()
    system.failing = {"bad"}
    ledger = SqliteLedger(tmp_path_factory.mktemp("cli") / "ledger.db")
    with capture_logs():  # they would stand among what the commands print
        async with Server(system, ledger, ServeOptions()) as started:
            yield started


@pytest.fixture(params=["grpc", "http"])
def shell(
    request: pytest.FixtureRequest,
    server: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    return Shell(f"{request.param}://127.0.0.1:{server.ports[request.param]}", capsys, monkeypatch)


@pytest.fixture
def space(request: pytest.FixtureRequest) -> str:
    """A space of the test's own."""
    return f"cli-{abs(hash(request.node.nodeid))}"


async def test_a_space_lives_its_whole_life(shell: Shell, space: str) -> None:
    assert "toy answers in" in (await shell("ping")).out
    assert "FILTER_SESSIONS" in (await shell("describe")).out
    added = await shell("add", space, stdin=LINES)
    assert (added.code, added.out.splitlines()[-1].partition(":")[0]) == (0, "2 turns")
    more = await shell(
        "add",
        space,
        "--turn-id",
        "t3",
        "--session",
        "s1",
        "--text",
        "Tea?",
        "--time",
        "2024-05-02T00:00:00Z",
        "--metadata",
        "a=b",
    )
    assert more.code == 0
    flushed = await shell("flush", space)
    assert flushed.out.startswith("done: 0 turns pending, 0 failed\n")
    assert "toy-model" in flushed.out
    assert (await shell("add", space, stdin=LINES)).out.endswith("2 turns: 2 SEARCHABLE (2 duplicates)\n")
    found = await shell("retrieve", space, "Kazan", "--top-k", "5")
    assert found.out.splitlines()[0] == "1. Kazan is fine."
    assert "from s2/t2" in found.out.splitlines()[1]
    assert "1 memory" in (await shell("retrieve", space, "kazan.", "--session", "s1")).out
    listed = await shell("turns", space)
    assert listed.out.splitlines()[0].split() == ["TURN", "STATE", "MEMORIES", "ERROR"]
    assert listed.out.endswith("3 turns\n")
    assert len((await shell("export", space)).out.splitlines()) == 3
    assert "would erase 1 memory and 1 turn" in (await shell("forget", space, "--turn", "t2", "--dry-run")).out
    erased = await shell("forget", space, "--turn", "t2", "--turn", "nope")
    assert "erased 1 memory and 1 turn" in erased.out
    assert "not found: nope" in erased.out
    assert "VECTOR" in erased.out
    assert "FORGOTTEN" in (await shell("turns", space)).out
    assert (await shell("reset", space, "--yes")).out.startswith("erased 2 memories and 2 turns\n")
    assert (await shell("turns", space)).out == "0 turns\n"


async def test_programs_get_json(shell: Shell, space: str) -> None:
    added = json.loads((await shell("--json", "add", space, stdin=LINES)).out)
    assert [result["turn_id"] for result in added["results"]] == ["t1", "t2"]
    assert json.loads((await shell("--json", "flush", space)).out)["done"] is True
    found = json.loads((await shell("--json", "retrieve", space, "moved")).out)
    assert found["memories"][0]["time"] == "2024-05-01T06:30:00+00:00"
    assert [json.loads(line)["state"] for line in (await shell("--json", "turns", space)).out.splitlines()] == [
        "SEARCHABLE",
        "SEARCHABLE",
    ]
    assert json.loads((await shell("--json", "describe")).out)["system"] == "toy"
    assert json.loads((await shell("--json", "ping")).out)["system"] == "toy"
    forgotten = json.loads((await shell("--json", "forget", space, "--session", "s2")).out)
    assert forgotten["erased_turn_ids"] == ["t2"]
    assert json.loads((await shell("--json", "reset", space, "--yes")).out)["erased_turns"] == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"turn_id": "x"', "line 2: the body is not JSON"),
        ('{"turn_id": "x", "session_id": "s", "role": "user", "txt": "a"}', "line 2: txt: is not a field"),
        ('{"turn_id": "x", "session_id": "s", "role": "bot", "text": "a"}', "line 2: role: must be one of"),
        (
            '{"turn_id": "x", "session_id": "s", "role": "user", "text": "a", "time": "2024-05-01"}',
            "line 2: time: must be",
        ),
        (
            '{"turn_id": "t1", "session_id": "s", "role": "user", "text": "a"}',
            "line 2: turn_id: is the turn_id of line 1",
        ),
        ("[]", "line 2: body: must be an object"),
    ],
)
async def test_a_bad_line_is_named_and_nothing_is_sent(shell: Shell, space: str, line: str, told: str) -> None:
    ran = await shell("add", space, stdin=LINES.splitlines()[0] + "\n" + line + "\n")
    assert ran.code == 1
    assert told in ran.err
    assert "nothing was sent" in ran.err
    assert (await shell("turns", space)).out == "0 turns\n"


async def test_more_lines_than_one_request_holds_are_sent_in_order(shell: Shell, space: str) -> None:
    texts = ['long\n"' * (9000 if index < 90 else 1) for index in range(400)]
    lines = [
        json.dumps({"turn_id": str(index), "session_id": "s", "role": "user", "text": text})
        for index, text in enumerate(texts)
    ]
    assert (await shell("add", space, stdin="\n".join(lines))).out.endswith("400 turns: 400 PENDING\n")
    listed = (await shell("--json", "turns", space)).out.splitlines()
    assert [json.loads(line)["turn_id"] for line in listed] == [str(index) for index in range(400)]


async def test_a_failed_turn_is_shown_with_its_reason(shell: Shell, space: str) -> None:
    await shell("add", space, "--turn-id", "bad", "--session", "s", "--text", "x")
    flushed = await shell("flush", space)
    assert flushed.code == 0
    assert "PROVIDER_PROTOCOL_ERROR: the toy was told to fail" in flushed.out
    assert "may be stale: 0 turns pending, 1 failed" in (await shell("retrieve", space, "x")).out
    await shell("reset", space, "--yes")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("retrieve", "a", " "), 1, "query: is required and must not be blank (VALIDATION_FAILED)"),
        (("retrieve", "..", "q"), 1, "space_id: must be"),
        (("--system", "other", "describe"), 1, "SYSTEM_NOT_FOUND"),
        (("--system", "other", "ping"), 1, "no system 'other' here; this server is 'toy' (SYSTEM_NOT_FOUND)"),
        (
            ("--url", "grpc://127.0.0.1:1", "--timeout", "3", "ping"),
            1,
            "grpc://127.0.0.1:1: cannot be reached: nothing",
        ),
        (("--url", "ftp://x", "ping"), 1, "memdock: 'ftp://x' must be grpc://host:port"),
        (("--url", "http://a:99999", "ping"), 1, "memdock: 'http://a:99999': Port out of range"),
        (("--key", "a", "--key-file", "b", "ping"), 2, "not both"),
        (("--key-file", "/no/such/file", "ping"), 1, "/no/such/file: cannot be read: No such file or directory\n"),
        (("--key-file", "/dev/null", "ping"), 1, "/dev/null: holds no key"),
        (("--ca-file", "/no/ca.pem", "ping"), 1, "TLS files need grpcs:// or https://"),
        (("retrieve", "a", "q", "--since", "2024-05-01"), 2, "must be an RFC 3339 time"),
        (("retrieve", "a", "q", "--top-k", "0"), 2, "--top-k"),
        (("retrieve", "a"), 2, "Missing argument 'QUERY'"),
        (("forget", "a"), 2, "exactly one kind"),
        (("forget", "a", "--turn", "t", "--memory", "m"), 2, "exactly one kind"),
        (("add", "a", "--text", "x"), 2, "--text needs --turn-id and --session"),
        (("add", "a", "--text", "", "--turn-id", "t", "--session", "s"), 1, "text: is required"),
        (("add", "a"), 1, "holds no turn"),
        (("reset", "a"), 1, "stopped"),
        (("dream",), 2, "No such command"),
        (("--bad",), 2, "No such option"),
        (("ping", "--url", "grpc://x:1"), 2, "--url stands before the command: memdock --url ... COMMAND"),
        (("retrieve", "a", "q", "--json"), 2, "--json stands before the command"),
        (("retrieve", "a", "\udcff"), 2, "not UTF-8"),
    ],
)
async def test_a_failure_is_one_sentence_and_a_code(
    shell: Shell, arguments: tuple[str, ...], code: int, told: str
) -> None:
    ran = await shell(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert "Usage:" not in ran.err or code == 2


async def test_a_gateway_is_told_by_its_systems(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        if method.name == "ListSystems":
            return pb.ListSystemsResponse(systems=[pb.SystemSummary(system="rag-dense", ready=True)])
        raise error("SYSTEM_NOT_FOUND", "name a system")

    async with faces_of(ScriptedService(answer)) as faces:
        shell = Shell(faces.grpc, capsys, monkeypatch)
        assert (await shell("ping")).out.splitlines() == [
            f"{faces.grpc}: a gateway for 1 system; choose one with --system",
            "SYSTEM     READY",
            "rag-dense  yes",
        ]
        assert json.loads((await shell("--json", "ping")).out) == {"systems": [{"system": "rag-dense", "ready": True}]}
        choose = "choose with --system: rag-dense (SYSTEM_NOT_FOUND)\n"
        assert (await shell("--system", "nope", "ping")).err == f"memdock: there is no system 'nope' here; {choose}"
        assert (await shell("turns", "anna")).err == f"memdock: no system was named; {choose}"


async def test_a_key_that_may_ask_nothing_can_still_ping_and_add(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def answer(method: Method, request: Any, call: Call) -> Any:
        asked.append(method.name)
        if method.name != "AddTurns":
            raise error("CALL_FORBIDDEN", f"the key may not call {method.name}")
        turn_ids = [turn.turn_id for turn in request.turns]
        return pb.AddTurnsResponse(
            results=[pb.TurnResult(turn_id=one, state=pb.TURN_STATE_PENDING) for one in turn_ids]
        )

    async with faces_of(ScriptedService(answer)) as faces:
        for url in faces.urls:
            shell = Shell(url, capsys, monkeypatch)
            for system, calls in ((), ["Describe", "ListSystems"]), (("--system", "rag"), ["Describe"]):
                asked.clear()
                told = (await shell(*system, "ping")).out
                assert (told, asked) == (f"{url}: ready; the key may not ask what it is\n", calls)
            assert json.loads((await shell("--json", "ping")).out) == {"ready": True}
            assert (await shell("add", "a", stdin=LINES)).out.endswith("2 turns: 2 PENDING\n")


async def test_a_missing_key_is_told_with_the_way_to_give_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with faces_of(ScriptedService(), admit=require_token("secret")) as faces:
        told = (await Shell(faces.grpc, capsys, monkeypatch)("ping")).err
        wrong = (await Shell(faces.grpc, capsys, monkeypatch)("--key", "x", "ping")).err
    assert "--key-file FILE before the command, or the variable MEMDOCK_KEY_FILE" in told
    assert "--key-file" not in wrong


async def test_a_typed_key_beats_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (right := tmp_path / "right").write_text("secret\n")
    (wrong := tmp_path / "wrong").write_text("x\n")
    async with faces_of(ScriptedService(), admit=require_token("secret")) as faces:
        shell = Shell(faces.grpc, capsys, monkeypatch)
        monkeypatch.setenv("MEMDOCK_KEY_FILE", str(right))
        assert "CREDENTIAL" not in (await shell("ping")).err
        assert "(CREDENTIAL_INVALID)" in (await shell("--key", "x", "ping")).err
        assert "(CREDENTIAL_INVALID)" in (await shell("--key-file", str(wrong), "ping")).err
        monkeypatch.setenv("MEMDOCK_KEY", "secret")
        assert "(CREDENTIAL_INVALID)" in (await shell("--key-file", str(wrong), "ping")).err
        both = await shell("ping")
    assert (both.code, "give MEMDOCK_KEY or MEMDOCK_KEY_FILE, not both" in both.err) == (2, True)


async def test_grpc_spoken_to_an_http_port_is_told(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"grpc://127.0.0.1:{server.ports['http']}"
    code = await asyncio.to_thread(run, ["--url", url, "ping"], {})
    assert (code, capsys.readouterr().err.partition(";")[0]) == (
        1,
        f"memdock: {url}: what answers there speaks no gRPC",
    )


async def test_an_unknown_variable_is_refused_and_other_programs_are_left_alone(shell: Shell) -> None:
    ran = await shell("ping", environment={"MEMDOCK_URI": "x"})
    assert ran.code == 1
    assert "Usage" not in ran.err
    assert "MEMDOCK_URI, which means nothing here" in ran.err
    known = {"MEMDOCK_URL": "x", "MEMDOCK_KEYS_FILE": "x", "MEMDOCK_EVAL_URL": "x", "PATH": "x"}
    assert (await shell("ping", environment=known)).code == 0


async def test_keys_are_made_rotated_listed_and_revoked(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    made = await shell(
        "keys",
        "create",
        "--file",
        str(file),
        "--tenant",
        "acme",
        "--space",
        "run-*",
        "--call",
        "Retrieve",
        "--lifetime",
        "90d",
    )
    first = made.out.strip()
    assert "not shown again" in made.err
    key = Keyring(read_keys(file)).identify(first, utc_now())
    assert (key.tenant, key.systems, key.spaces, key.calls) == ("acme", ("*",), ("run-*",), ("Retrieve",))
    rotated = json.loads((await shell("--json", "keys", "rotate", "--file", str(file), key.key_id)).out)
    ring = Keyring(read_keys(file))
    assert ring.identify(first, utc_now()) == ring.identify(rotated["key"], utc_now())
    listed = await shell("keys", "list", "--file", str(file))
    row = listed.out.splitlines()[1].split()
    assert (row[0], row[1], row[-1]) == (key.key_id, "acme", "2")
    secrets = (first.rpartition("_")[2], read_keys(file)[0].secrets[0].sha256)
    as_json = await shell("--json", "keys", "list", "--file", str(file))
    assert not any(secret in listed.out + as_json.out for secret in secrets)
    assert (await shell("keys", "revoke", "--file", str(file), key.key_id)).code == 0
    assert read_keys(file) == ()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("create", "--tenant", "a", "--space", "a b"), 2, "spaces 'a b' is no space_id"),
        (("create", "--tenant", "a", "--call", "retrieve"), 2, "calls 'retrieve' is none of"),
        (("create", "--tenant", "a", "--lifetime", "soon"), 2, "such as 12h"),
        (("create",), 2, "Missing option '--tenant'"),
        (("rotate", "0123456789"), 1, "there is no key '0123456789'"),
        (("revoke", "0123456789"), 1, "there is no key '0123456789'"),
        (("list",), 1, "there is no such file"),
    ],
)
async def test_a_wrong_key_command_makes_no_file(
    shell: Shell, tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    ran = await shell("keys", arguments[0], "--file", str(tmp_path / "keys.json"), *arguments[1:])
    assert ran.code == code
    assert told in ran.err
    assert list(tmp_path.iterdir()) == []


async def test_every_command_teaches(shell: Shell) -> None:
    for command in ([], ["add"], ["retrieve"], ["forget"], ["export"], ["keys"], ["keys", "create"]):
        ran = await shell(*command, "--help")
        assert (ran.code, ran.err) == (0, "")
        assert "Usage: memdock" in ran.out
    assert "memdock retrieve anna" in (await shell("--help")).out


async def test_the_installed_command_exits_with_the_code() -> None:
    def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("memdock")), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    away = await asyncio.to_thread(typed, "--url", "grpc://127.0.0.1:1", "--timeout", "3", "ping")
    assert (away.returncode, away.stdout) == (1, "")
    sentence = "memdock: grpc://127.0.0.1:1: cannot be reached: nothing answers there (ADAPTER_UNREACHABLE)\n"
    assert away.stderr == sentence
