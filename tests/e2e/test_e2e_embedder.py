"""The embedding endpoint behind an adapter fails in every way, and changes: turns say why, and a retry heals them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from aiohttp import web

from memdock import Client, connect
from memdock.errors import DeadlineExceededError, MemdockError
from memdock.types import Turn, TurnState
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import Daemon, free_port, run_command
from support.whole_stack import WholeStack, serve_flags
from support.words import embed_words

SYSTEM = "rag-remote"
TURN = Turn(turn_id="t1", session_id="s1", role="user", text="I keep bees", time=None)


@dataclass(slots=True, kw_only=True)
class Remote:
    """A system whose model is a scripted endpoint of its own, on the stack's PostgreSQL."""

    stack: WholeStack
    models: ModelServer
    grpc_port: int
    process: Daemon

    def with_model(self, name: str) -> Daemon:
        """The same system with another model's name."""
        flags = serve_flags(self.stack.folder / "data", SYSTEM, f"{self.models.url}#{name}", self.grpc_port, 0)
        return Daemon(SYSTEM, "memdock-pgvector", flags, self.stack.folder)

    def client(self, timeout_s: float = 20.0) -> Client:
        """A client without a gateway between."""
        return connect(f"grpc://127.0.0.1:{self.grpc_port}", timeout_s=timeout_s)


@pytest.fixture(scope="module")
def remote(stack: WholeStack) -> Iterator[Remote]:
    with models_in_thread(ModelServer(embed=embed_words)) as models:
        port = free_port()
        flags = serve_flags(stack.folder / "data", SYSTEM, f"{models.url}#first", port, 0)
        process = Daemon(SYSTEM, "memdock-pgvector", flags, stack.folder)
        running = Remote(stack=stack, models=models, grpc_port=port, process=process)
        try:
            process.start()
            yield running
        finally:
            running.process.stop()


@pytest.fixture(autouse=True)
def healed(remote: Remote) -> Iterator[None]:
    yield
    remote.models.faults.clear()
    assert "Traceback" not in remote.process.log


def state_of(client: Client, space: str) -> tuple[TurnState, str]:
    """The state of the one turn, and the reason if it failed."""
    (record,) = client.list_turns(space)
    return record.state, record.error.reason if record.error else ""


FAULTS: dict[str, tuple[Callable[[], web.Response], str, str]] = {
    "401": (lambda: web.Response(status=401), "PROVIDER_AUTH_FAILED", "refused the key (HTTP 401)"),
    "429": (
        lambda: web.Response(status=429, headers={"Retry-After": "0.2"}),
        "PROVIDER_RATE_LIMITED",
        "over its rate (HTTP 429)",
    ),
    "500": (lambda: web.Response(status=500), "PROVIDER_UNREACHABLE", "failed (HTTP 500)"),
    "garbage": (lambda: web.Response(text="<html>"), "PROVIDER_PROTOCOL_ERROR", "answered no list of vectors"),
}


@pytest.mark.parametrize("fault", ["401", "429", pytest.param("500", marks=pytest.mark.slow), "garbage"])
def test_the_endpoint_fails(remote: Remote, fault: str) -> None:
    respond, reason, sentence = FAULTS[fault]
    space = f"fault-{fault}"
    with remote.client() as client:
        remote.models.faults[:] = [respond() for _ in range(20)]
        client.add_turns(space, [TURN])
        flushed = client.flush(space)
        assert (flushed.done, flushed.pending, flushed.failed_count) == (True, 0, 1)
        error = flushed.failed[0].error
        assert error is not None
        assert (error.reason, error.retryable, sentence in error.message) == (reason, True, True)
        with pytest.raises(MemdockError, match=reason):
            client.retrieve(space, "bees")
        remote.models.faults.clear()
        again = client.add_turns(space, [TURN]).results[0]
        assert (again.duplicate, again.state) == (True, TurnState.PENDING)
        assert client.flush(space).failed_count == 0
        assert [memory.text for memory in client.retrieve(space, "bees").memories] == ["user: I keep bees"]
        assert state_of(client, space) == (TurnState.SEARCHABLE, "")


def test_the_endpoint_asks_to_wait(remote: Remote) -> None:
    with remote.client() as client:
        remote.models.faults[:] = [web.Response(status=429, headers={"Retry-After": "1"})]
        started_s = time.monotonic()
        client.add_turns("wait", [TURN])
        assert client.flush("wait").failed_count == 0
        assert time.monotonic() - started_s >= 1.0
        assert state_of(client, "wait") == (TurnState.SEARCHABLE, "")


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_endpoint_never_answers(remote: Remote) -> None:
    """Callers get their answers in time; the turn is done when the endpoint is back and the old request is given up."""
    with remote.client(timeout_s=5) as client:
        remote.models.faults[:] = ["hang", "hang"]
        client.add_turns("never", [TURN])
        flushed = client.flush_once("never", timeout_s=1)
        assert (flushed.done, flushed.pending) == (False, 1)
        with pytest.raises(DeadlineExceededError):
            client.retrieve("never", "bees")
        assert state_of(client, "never") == (TurnState.PENDING, "")
        assert client.flush("never", timeout_s=120).done
        assert state_of(client, "never") == (TurnState.SEARCHABLE, "")


def test_the_adapter_starts_with_a_refused_key(remote: Remote) -> None:
    remote.models.faults[:] = [web.Response(status=401)]
    flags = serve_flags(remote.stack.folder / "data", "rag-new", f"{remote.models.url}#first", 0, 0)
    done = run_command("memdock-pgvector", *flags)
    assert done.code == 1
    assert "cannot serve: the embedding endpoint refused the key (HTTP 401)" in done.words
    assert "Traceback" not in done.words


def test_another_embedder_is_refused_until_reindex(remote: Remote) -> None:
    space, late = "changed", replace(TURN, turn_id="t2", text="and they make honey")
    with remote.client() as client:
        client.add_turns(space, [TURN])
        assert client.flush(space).done
    remote.process.stop()
    remote.process = remote.with_model("second")
    remote.process.start()
    with remote.client() as client:
        with pytest.raises(MemdockError, match=r"EMBEDDER_MISMATCH.*first.*second.*memdock-pgvector reindex"):
            client.retrieve(space, "bees")
        client.add_turns(space, [late])
        assert [turn.error.reason for turn in client.flush(space).failed if turn.error] == ["EMBEDDER_MISMATCH"]
        client.add_turns("new-space", [TURN])
        assert client.flush("new-space").failed_count == 0
        data, second = remote.stack.folder / "data", f"{remote.models.url}#second"
        done = run_command("memdock-pgvector", "reindex", "--system", SYSTEM, "--data", data, "--embedder", second)
        assert done.code == 0, done.words
        assert "all of it is by second now" in done.words
        client.add_turns(space, [late])
        assert client.flush(space).failed_count == 0
        found = client.retrieve(space, "bees honey")
        assert {memory.text for memory in found.memories} == {"user: I keep bees", "user: and they make honey"}
