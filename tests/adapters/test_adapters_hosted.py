"""What every adapter to a hosted service does where the service fails, is slow, over its rate, or refuses the key."""

import os
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from memdock.errors import MemdockError
from memdock.types import TurnState
from support.adapters import ADAPTERS, Adapter, RunningAdapter, environment, fill, running, space, turn
from support.hosted_service import KEY, Fault, Service
from support.model_server import ModelServer
from support.processes import run_command

HOSTED = [
    each for each in ADAPTERS if each.service is not None and each.name in os.environ.get("ADAPTERS", each.name).split()
]
FAULTS = {
    "500": Fault(status=500, body=b'{"message": "oops"}'),
    "502 of a proxy": Fault(status=502, body=b"<html>Bad Gateway</html>", content_type="text/html"),
    "429": Fault(status=429, body=b'{"message": "slow down"}'),
    "malformed": Fault(body=b'{"results": ['),
    "empty": Fault(),
    "cut": Fault(body=b'{"results": ', cut=True),
    "another form": Fault(body=b'["of", "another", "form"]'),
    "a lost answer": Fault(status=504, body=b"{}", worked=True),
}
PATIENCE = {"--answer-timeout": "10", "--rate-limit-patience": "5", "--processing-timeout": "60"}


@pytest.fixture(scope="module", params=HOSTED, ids=str)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Each hosted one."""
    chosen: Adapter = request.param
    return chosen


@pytest.fixture(scope="module")
def served(adapter: Adapter, models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAdapter]:
    """The adapter, with less patience than by default."""
    with running(adapter, tmp_path_factory.mktemp(adapter.name), models, flags=PATIENCE) as started:
        yield started


@pytest.fixture(autouse=True)
def service(served: RunningAdapter) -> Iterator[Service]:
    """The fake, without faults, and nothing odd sent to it."""
    assert served.service is not None
    yield served.service
    served.service.faults.clear()
    served.service.skip = 0
    assert not served.service.refused


@pytest.mark.parametrize(
    ("nth", "lasting"), [*((nth, False) for nth in range(1, 9)), (1, True), (5, True)], ids=lambda value: str(value)
)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_nth_request_fails(served: RunningAdapter, service: Service, nth: int, fault: str, lasting: bool) -> None:
    name, said = space(), turn("t1", "persimmon is the name of my cat")
    with served.client() as client:
        service.fail_from(nth, [FAULTS[fault]] * (60 if lasting else 1))
        client.add_turns(name, [said])
        assert client.flush(name, timeout_s=120).done
        service.faults.clear()
        service.skip = 0
        (record,) = client.list_turns(name)
        if record.state is TurnState.FAILED:
            assert record.error is not None
            assert record.error.reason.startswith("PROVIDER_"), record.error
            client.add_turns(name, [said])
            assert client.flush(name, timeout_s=120).done
            (record,) = client.list_turns(name)
        assert record.state is TurnState.SEARCHABLE, record
        found = [each for each in client.retrieve(name, "persimmon", top_k=20).memories if "persimmon" in each.text]
        assert len(found) == 1, "stored once, whatever failed on the way"


@pytest.mark.parametrize("fault", ["500", "429", "malformed", "cut", "another form"])
def test_a_search_that_fails_is_an_error_and_no_empty_list(
    served: RunningAdapter, service: Service, fault: str
) -> None:
    name = space()
    with served.client() as client:
        fill(client, name, turn("t1", "persimmon is my cat"))
        service.fail_from(1, [FAULTS[fault]] * 60)
        with pytest.raises(MemdockError) as told:
            client.retrieve(name, "persimmon")
        assert told.value.reason.startswith("PROVIDER_"), told.value
        service.faults.clear()
        assert client.retrieve(name, "persimmon").memories


@pytest.mark.parametrize("fault", ["500", "429", "a lost answer"])
@pytest.mark.parametrize("nth", range(1, 7))
def test_an_erasure_that_fails_on_its_way_ends_whole(
    served: RunningAdapter, service: Service, nth: int, fault: str
) -> None:
    name = space()
    with served.client() as client:
        fill(client, name, turn("t1", "persimmon is my cat"), turn("t2", "quince is my dog", "s2"))
        service.fail_from(nth, [FAULTS[fault]])
        assert client.forget(name, turn_ids=["t1"]).erased_turn_ids == ("t1",)
        service.faults.clear()
        assert [each.text for each in client.retrieve(name, "persimmon quince").memories] == ["quince is my dog"]
        service.fail_from(nth, [FAULTS[fault]])
        client.reset(name)
        service.faults.clear()
        assert client.retrieve(name, "persimmon quince").memories == ()


def test_it_waits_as_long_as_the_service_asks_for(served: RunningAdapter, service: Service) -> None:
    name, slow = space(), Fault(status=429, headers={"Retry-After": "1"})
    with served.client() as client:
        fill(client, name, turn("t1", "persimmon is my cat"))
        service.fail_from(1, [slow])
        assert client.retrieve(name, "persimmon").memories
        service.fail_from(1, [Fault(status=429, headers={"Retry-After": "3600"})])
        before = len(service.requests)
        with pytest.raises(MemdockError) as told:
            client.retrieve(name, "persimmon")
        assert told.value.reason == "PROVIDER_RATE_LIMITED"
        assert told.value.retry_after_s == pytest.approx(3600, rel=0.01)
        assert len(service.requests) == before + 1, "an hour is more than its patience"


def test_a_service_that_hangs_is_a_time_out(adapter: Adapter, models: ModelServer, tmp_path: Path) -> None:
    hasty = {**PATIENCE, "--answer-timeout": "0.3"}
    with running(adapter, tmp_path, models, flags=hasty) as started, started.client() as client:
        assert started.service is not None
        started.service.fail_from(1, [Fault(hang=True)] * 60)
        with pytest.raises(MemdockError) as told:
            client.retrieve("one", "persimmon")
        assert told.value.reason == "PROVIDER_TIMEOUT"


def test_a_turn_is_pending_until_the_service_has_worked_it_in(served: RunningAdapter, service: Service) -> None:
    name = space()
    with served.client() as client:
        service.held = True
        try:
            client.add_turns(name, [turn("t1", "persimmon is my cat")])
            client.flush(name, timeout_s=0)  # nothing waits for a reply any longer
            assert not client.flush(name, timeout_s=0.1).done
            assert [each.state for each in client.list_turns(name)] == [TurnState.PENDING]
        finally:
            service.held = False
        assert client.flush(name, timeout_s=60).done
        assert [each.state for each in client.list_turns(name)] == [TurnState.SEARCHABLE]


def test_what_the_service_never_works_in_is_failed_and_leaves_nothing(
    adapter: Adapter, models: ModelServer, tmp_path: Path
) -> None:
    impatient = {**PATIENCE, "--processing-timeout": "1"}
    with running(adapter, tmp_path, models, flags=impatient) as started, started.client() as client:
        name, word = space(), "persimmon"
        models.faults[:] = ["hang"]
        client.add_turns(name, [turn("t1", f"{word} is my cat")])
        assert client.flush(name, timeout_s=60).done
        (record,) = client.list_turns(name)
        assert record.state is TurnState.FAILED
        assert record.error is not None
        assert (record.error.reason, record.error.retryable) == ("PROVIDER_TIMEOUT", True)
        assert all(word not in each.text for each in client.retrieve(name, word).memories)


async def test_a_key_that_the_service_refuses_stops_the_start_and_is_told_nowhere(
    adapter: Adapter, models: ModelServer, tmp_path: Path
) -> None:
    with running(adapter, tmp_path, models, flags=PATIENCE) as started:
        assert started.service is not None
        with started.client() as client:
            name = space()
            fill(client, name, turn("t1", "persimmon is my cat"))
            started.service.key = "another"
            with pytest.raises(MemdockError) as told:
                client.retrieve(name, "persimmon")
            assert told.value.reason == "PROVIDER_AUTH_FAILED"
            assert KEY not in told.value.message
            address = f"http://127.0.0.1:{started.process.ports()['http']}/readyz"
            async with aiohttp.ClientSession() as session, session.get(address) as answer:
                assert answer.status == 503
        url = started.service.url + started.service.base
        secret = tmp_path / "secret"
        secret.write_text(f"{KEY}\n")
        for given in ({"MEMDOCK_ADAPTER_API_KEY": KEY}, {"MEMDOCK_ADAPTER_API_KEY_FILE": str(secret)}):
            done = run_command(
                str(environment(adapter.name) / f"memdock-{adapter.name}"),
                *("serve", "--data", tmp_path / "other", "--url", url),
                environment=given,
            )
            assert done.code == 1
            assert "refused the API key" in done.words
            assert KEY not in done.words
        secret.unlink()
        files = [each for each in tmp_path.rglob("*") if each.is_file()]
        assert not [each for each in files if KEY.encode() in each.read_bytes()], "the key stands in a file or a log"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Missing option '--api-key'"),
        (["--api-key", "a key"], "has a space"),
        (["--api-key", "k", "--chat-url", "http://127.0.0.1:1/v1"], "No such option"),
        (["--api-key", "k", "--url", "api.example.com"], "expected an address"),
    ],
)
def test_what_it_cannot_be_started_with(adapter: Adapter, words: list[str], said: str, tmp_path: Path) -> None:
    command = str(environment(adapter.name) / f"memdock-{adapter.name}")
    done = run_command(command, "serve", "--data", tmp_path, *words)
    assert done.code == 2
    assert said in done.words


def test_what_its_models_cost_is_not_said(served: RunningAdapter) -> None:
    """Not known is no line, rather than a line of zeros."""
    name = space()
    with served.client() as client:
        assert client.describe().models == ()
        fill(client, name, turn("t1", "persimmon is my cat"))
        assert client.flush(name, timeout_s=0).space_usage == ()
        assert client.retrieve(name, "persimmon").usage == ()


def test_a_space_is_a_user_whose_name_tells_nothing_of_it(served: RunningAdapter, service: Service) -> None:
    name = space()
    with served.client() as client:
        fill(client, name, turn("t1", "persimmon is my cat"))
        client.retrieve(name, "persimmon")
        client.reset(name)
    assert not [path for _, path in service.requests if name in path]
