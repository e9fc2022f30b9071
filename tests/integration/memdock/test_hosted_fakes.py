"""The fakes of hosted services refuse what the services' own clients would not send, and remember why."""

from typing import Any

import aiohttp
import pytest

from support.fake_mem0 import FakeMem0
from support.fake_zep import FakeZep
from support.hosted_service import Service

MESSAGE = {"role": "user", "content": "hello", "created_at": "2019-05-04T10:30:00Z"}
ZEP: dict[str, tuple[str, str, Any]] = {
    "an unknown field": ("POST", "/users", {"user_id": "u2", "name": "Olga"}),
    "a missing field": ("POST", "/threads", {"thread_id": "t2"}),
    "another type": ("POST", "/graph/search", {"user_id": "u", "query": "q", "limit": "10"}),
    "a limit that is too high": ("POST", "/graph/search", {"user_id": "u", "query": "q", "limit": 51}),
    "a query that is too long": ("POST", "/graph/search", {"user_id": "u", "query": "q" * 401}),
    "a role of its own": ("POST", "/threads/t/messages", {"messages": [{**MESSAGE, "role": "boss"}]}),
    "a time without an offset": (
        "POST",
        "/threads/t/messages",
        {"messages": [{**MESSAGE, "created_at": "2019-05-04"}]},
    ),
    "too long a message": ("POST", "/threads/t/messages", {"messages": [{**MESSAGE, "content": "x" * 2501}]}),
    "too many messages": ("POST", "/threads/t/messages", {"messages": [MESSAGE] * 31}),
    "an unknown path": ("GET", "/users/u/memories", None),
    "an unknown verb": ("PUT", "/users/u", {"user_id": "u"}),
    "a query that there is not": ("GET", "/users/u?full=1", None),
    "a body where none belongs": ("DELETE", "/users/u", {"user_id": "u"}),
}
MEM0: dict[str, tuple[str, str, Any]] = {
    "an unknown field": ("POST", "/v3/memories/add/", {"messages": [], "user_id": "u", "async_mode": True}),
    "no user": ("POST", "/v3/memories/add/", {"messages": [{"role": "user", "content": "x"}]}),
    "a role of its own": (
        "POST",
        "/v3/memories/add/",
        {"messages": [{"role": "tool", "content": "x"}], "user_id": "u"},
    ),
    "a name": (
        "POST",
        "/v3/memories/add/",
        {"messages": [{"role": "user", "content": "x", "name": "Olga"}], "user_id": "u"},
    ),
    "a time that is no whole number": (
        "POST",
        "/v3/memories/add/",
        {"messages": [{"role": "user", "content": "x"}], "user_id": "u", "timestamp": 1.5},
    ),
    "a user beside the filters": ("POST", "/v3/memories/search/", {"query": "q", "user_id": "u", "filters": {}}),
    "filters without a user": ("POST", "/v3/memories/search/", {"query": "q", "filters": {"AND": []}}),
    "an empty query": ("POST", "/v3/memories/search/", {"query": "", "filters": {"user_id": "u"}}),
    "an operator of metadata that there is not": (
        "POST",
        "/v3/memories/search/",
        {"query": "q", "filters": {"AND": [{"user_id": "u"}, {"metadata": {"a": {"in": ["b"]}}}]}},
    ),
    "a page that is too long": ("POST", "/v3/memories/?page=1&page_size=201", {"filters": {"user_id": "u"}}),
    "the memories of everybody": ("DELETE", "/v1/memories/", None),
    "an event of nobody": ("GET", "/v1/event/00000000-0000-0000-0000-000000000000/", None),
    "a path without its slash": ("POST", "/v3/memories/add", {"messages": [], "user_id": "u"}),
}


@pytest.mark.parametrize(
    ("fake", "odd"),
    [*((FakeZep, each) for each in ZEP), *((FakeMem0, each) for each in MEM0)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
async def test_an_odd_request_is_refused_and_told(fake: type[Service], odd: str) -> None:
    service = fake()
    async with (
        service.serving(),
        aiohttp.ClientSession(headers={"Authorization": f"{fake.scheme} {service.key}"}) as us,
    ):
        base = service.url + service.base
        if isinstance(service, FakeZep):
            await us.post(f"{base}/users", json={"user_id": "u"})
            await us.post(f"{base}/threads", json={"thread_id": "t", "user_id": "u"})
        assert not service.refused
        verb, path, body = (ZEP if isinstance(service, FakeZep) else MEM0)[odd]
        async with us.request(verb, base + path, json=body) as answer:
            assert 400 <= answer.status < 500
        assert len(service.refused) == 1
        another = {"Authorization": f"{fake.scheme} another"}
        async with us.request(verb, base + path, json=body, headers=another) as answer:
            assert answer.status == 401
