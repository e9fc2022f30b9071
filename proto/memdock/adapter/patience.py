"""Requests to a hosted service that are tried again where that is safe, and whose failures are the protocol's errors.

`patient(client, ...)` is put around an `httpx.AsyncClient` before a vendor's own client gets it: whatever that sends
waits where the service says 429, is repeated where a repetition does no harm, and else raises a `MemdockError`.
"""

import asyncio
import importlib
import json
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from memdock.adapter.whole_text import with_whole_texts
from memdock.errors import MemdockError, error

TRIES = 4
"""At most, of one request."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 10.0


def patient(client: Any, service: str, *, once: Callable[[Any], bool], patience_s: float) -> Any:
    """The same `httpx.AsyncClient`, patient from now on.

    `service` names the vendor in messages. Requests that are `once` may have done their work although they failed, so
    only 429 is tried again for them. A service that asks for a longer wait than `patience_s` in all is
    PROVIDER_RATE_LIMITED at once, with its wait as `retry_after_s`. What is answered is JSON, or raises
    PROVIDER_PROTOCOL_ERROR; statuses that a vendor's client gives a meaning to (400, 404, 409, ...) are its to see.
    """
    library: Any = importlib.import_module(type(client).__module__.partition(".")[0])
    send = client.send

    async def ask(request: Any, more: dict[str, Any]) -> Any:
        """The answer, or the failure that it is."""
        try:
            response = await send(request, **more)
        except library.TimeoutException:
            return error("PROVIDER_TIMEOUT", f"{service} did not answer in time.")
        except library.HTTPError:
            return error("PROVIDER_UNREACHABLE", f"{service} cannot be reached, or broke off its answer.")
        return failure_of(service, response) or with_whole_texts(library, response)

    async def sent(request: Any, **more: Any) -> Any:
        left = patience_s
        for tried in range(1, TRIES + 1):
            answer = await ask(request, more)
            if not isinstance(answer, MemdockError):
                return answer
            wait = answer.retry_after_s
            if wait is None:
                wait = min(_FIRST_WAIT_S * 2 ** (tried - 1), _LONGEST_WAIT_S) * random.uniform(0.5, 1.0)  # noqa: S311
            if tried == TRIES or wait > left or not _may_pass(answer, once=once(request)):
                raise answer
            left -= wait
            await asyncio.sleep(wait)
        raise AssertionError("a loop that returns or raises")

    client.send = sent
    return client


def failure_of(service: str, response: Any) -> MemdockError | None:
    """What is wrong with an answer, whatever was asked; `None` where a vendor's client may read it."""
    status = response.status_code
    if status == 429:
        wait = retry_after_s(response.headers.get("retry-after", ""))
        return error("PROVIDER_RATE_LIMITED", f"{service} is over its rate (HTTP 429).", retry_after_s=wait)
    if status in (401, 402, 403):
        return error("PROVIDER_AUTH_FAILED", f"{service} refused the API key, or its plan (HTTP {status}).")
    if status in (408, 504):
        return error("PROVIDER_TIMEOUT", f"{service} did not answer in time (HTTP {status}).")
    if status >= 500:
        return error("PROVIDER_UNREACHABLE", f"{service} failed (HTTP {status}).")
    if 300 <= status < 400:
        return error("PROVIDER_PROTOCOL_ERROR", f"{service} sent the request elsewhere (HTTP {status}).")
    if status < 300 and not _is_json(response.content):
        return error("PROVIDER_PROTOCOL_ERROR", f"{service} answered no JSON (HTTP {status}).")
    return None


def retry_after_s(header: str) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or as a date (RFC 9110, section 10.2.3).

    `None` without one that can be read, or that is no wait: negative, or without end.
    """
    try:
        wait_s = float(header)
    except ValueError:
        return _until(header)
    return wait_s if math.isfinite(wait_s) and wait_s >= 0 else None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, (aware - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


def _may_pass(failure: MemdockError, *, once: bool) -> bool:
    if failure.reason == "PROVIDER_RATE_LIMITED":
        return True
    return failure.reason != "PROVIDER_AUTH_FAILED" and not once


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True
