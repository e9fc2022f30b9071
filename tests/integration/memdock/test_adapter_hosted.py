"""Requests to a hosted service: what is tried again, what is not, and which error each failure is."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import click
import httpx2
import pytest
from aiohttp import web
from click.testing import CliRunner

from memdock.adapter.hosted import HostedSettings, hosted_command, settled, user_of
from memdock.adapter.patience import TRIES, patient, retry_after_s
from memdock.errors import MemdockError
from support.hosted_service import Fault, Handler, Service
from support.processes import free_port

LOST = Fault(status=500, body=b"{}", worked=True)


class Counter(Service):
    """Counts what it is told."""

    scheme = "Bearer"

    def __init__(self) -> None:
        super().__init__()
        self.told = 0

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        return [("GET", "/told", self._get), ("POST", "/told", self._post), ("GET", "/none", self._none)]

    async def _get(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"told": self.told})

    async def _post(self, request: web.Request) -> web.StreamResponse:
        self.told += 1
        return web.json_response({"told": self.told})

    async def _none(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"message": "there is none"}, status=404)


@pytest.fixture
async def service() -> AsyncIterator[Counter]:
    counter = Counter()
    async with counter.serving():
        yield counter


@pytest.fixture
async def client(service: Counter) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {service.key}"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=0.5) as plain:
        yield patient(plain, "Counter", once=lambda request: request.method == "POST", patience_s=2.0)


async def reason_of(asking: Any) -> str:
    with pytest.raises(MemdockError) as told:
        await asking
    return told.value.reason


PASSING = {
    "PROVIDER_UNREACHABLE": Fault(status=503, body=b"{}"),
    "PROVIDER_TIMEOUT": Fault(status=504, body=b"{}"),
    "PROVIDER_RATE_LIMITED": Fault(status=429),
    "PROVIDER_PROTOCOL_ERROR": Fault(body=b'{"told": '),
}


@pytest.mark.parametrize("reason", PASSING)
async def test_what_does_no_harm_is_tried_again(service: Counter, client: Any, reason: str) -> None:
    service.fail_from(1, [PASSING[reason]] * (TRIES - 1))
    assert (await client.get("/told")).json() == {"told": 0}
    assert len(service.requests) == TRIES
    service.fail_from(1, [PASSING[reason]] * TRIES)
    assert await reason_of(client.get("/told")) == reason
    assert not service.faults


@pytest.mark.parametrize("fault", [LOST, Fault(hang=True), Fault(body=b"{", cut=True), Fault(body=b"no JSON")])
async def test_what_may_have_done_its_work_is_not_tried_again(service: Counter, client: Any, fault: Fault) -> None:
    service.fail_from(1, [fault])
    assert (await reason_of(client.post("/told", json={}))).startswith("PROVIDER_")
    assert len(service.requests) == 1


async def test_what_was_refused_for_its_rate_is_tried_again_whatever_it_is(service: Counter, client: Any) -> None:
    service.fail_from(1, [Fault(status=429)])
    assert (await client.post("/told", json={})).json() == {"told": 1}


async def test_a_wait_that_is_longer_than_its_patience_is_told_at_once(service: Counter, client: Any) -> None:
    service.fail_from(1, [Fault(status=429, headers={"Retry-After": "3"})])
    with pytest.raises(MemdockError) as told:
        await client.get("/told")
    assert (told.value.reason, told.value.retry_after_s) == ("PROVIDER_RATE_LIMITED", 3.0)
    assert len(service.requests) == 1


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_a_key_that_is_refused_is_not_sent_again(service: Counter, client: Any, status: int) -> None:
    service.fail_from(1, [Fault(status=status, body=b"{}")])
    assert await reason_of(client.get("/told")) == "PROVIDER_AUTH_FAILED"
    assert len(service.requests) == 1


async def test_what_a_vendors_client_has_a_word_for_is_its_to_see(service: Counter, client: Any) -> None:
    assert (await client.get("/none")).status_code == 404
    assert len(service.requests) == 1


async def test_a_key_does_not_follow_to_another_address(service: Counter, client: Any) -> None:
    service.fail_from(1, [Fault(status=302, headers={"Location": "http://127.0.0.1:9/"})] * TRIES)
    assert await reason_of(client.get("/told")) == "PROVIDER_PROTOCOL_ERROR"


async def test_nobody_there_is_unreachable() -> None:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{free_port()}") as plain:
        asking = patient(plain, "Nobody", once=lambda request: True, patience_s=1.0).get("/told")
        assert await reason_of(asking) == "PROVIDER_UNREACHABLE"


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("", None), ("soon", None), ("-1", None), ("inf", None), ("nan", None)],
)
def test_the_wait_of_a_header(header: str, wait_s: float | None) -> None:
    assert retry_after_s(header) == wait_s


def test_a_wait_may_be_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert retry_after_s(later) == pytest.approx(3600, abs=5)
    assert retry_after_s("Sun, 06 Nov 1994 08:49:37 GMT") == 0.0


async def test_what_is_not_settled_in_time_is_a_time_out() -> None:
    looks = 0

    async def third() -> bool:
        nonlocal looks
        looks += 1
        return looks == 3

    async def never() -> bool:
        return False

    await settled(third, 60.0, "It did not come")
    assert looks == 3
    with pytest.raises(MemdockError, match=r"It did not come within 0\.1 s") as told:
        await settled(never, 0.1, "It did not come")
    assert told.value.reason == "PROVIDER_TIMEOUT"


def test_no_two_spaces_share_a_user_and_none_is_named_by_its_space() -> None:
    spaces = ["a", "A", "a.b", "a_b", "x" * 128, "*", "__all__"]
    users = {user_of(system, each) for system in ("zep", "zep-2") for each in spaces}
    assert len(users) == 2 * len(spaces)
    assert all(len(each) <= 96 and set(each) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for each in users)
    assert user_of("zep", "a") == user_of("zep", "a")


def command(seen: list[HostedSettings]) -> click.Group:
    """A hosted service's command that ends as it opens."""

    def open_system(settings: HostedSettings) -> Any:
        seen.append(settings)
        raise ValueError("opened")

    return hosted_command("x", "X.", "https://x.example/v1", open_system)


def test_the_command_takes_a_key_and_no_models(tmp_path: Path) -> None:
    seen: list[HostedSettings] = []
    secret = tmp_path / "key"
    secret.write_text("k-1\n")
    run = CliRunner().invoke
    for given in ({"MEMDOCK_ADAPTER_API_KEY": "k-1"}, {"MEMDOCK_ADAPTER_API_KEY_FILE": str(secret)}):
        done = run(command(seen), ["serve", "--data", str(tmp_path)], env=given)
        assert "opened" in str(done.exception), done.output
    assert [each.api_key for each in seen] == ["k-1", "k-1"]
    assert "k-1" not in repr(seen)
    assert (seen[0].url, seen[0].answer_s, seen[0].processing_s, seen[0].patience_s) == (
        "https://x.example/v1",
        30.0,
        600.0,
        120.0,
    )
    for words, env, said in (
        (["--chat-url", "http://h/v1"], {}, "No such option"),
        ([], {"MEMDOCK_ADAPTER_CHAT_URL": "http://h/v1"}, "unknown variable MEMDOCK_ADAPTER_CHAT_URL"),
        ([], {"MEMDOCK_ADAPTER_API_KEY": "two words"}, "has a space"),
        (["--answer-timeout", "0"], {}, "--answer-timeout"),
    ):
        done = run(command(seen), ["serve", *words], env={"MEMDOCK_ADAPTER_API_KEY": "k", **env})
        assert said in done.output
        assert done.exit_code != 0
