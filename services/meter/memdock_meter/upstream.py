"""An endpoint: asked again where that may help, as late as it wishes."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar

import aiohttp
import orjson

from memdock_meter.config import UpstreamConfig
from memdock_meter.wire import PATHS, Request, Tokens, WireError

ReadT = TypeVar("ReadT")
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FIRST_WAIT_S = 0.5


class CutError(Exception):
    """A reply that ended before its end, or that is none of this wire."""


@dataclass(slots=True, kw_only=True)
class Attempt(Generic[ReadT]):
    """A call under way: `tries` counts the requests made so far, also when the call then fails. `read` gets the
    attempt, to note in it what the reply takes.
    """

    request: Request
    content: bytes
    read: Callable[["Attempt[ReadT]", aiohttp.ClientResponse], Awaitable[ReadT]]
    begun: Callable[[], bool]
    """Whether the caller has got a piece of the reply: then no other try can be made."""
    tries: int = 0
    told: Tokens | None = None
    """What a reply took that was begun and did not come to its end."""


class Upstream:
    """`close` it at the end. While the endpoint asks for a wait, no call begins."""

    def __init__(self, config: UpstreamConfig, key: str) -> None:
        self._config = config
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=config.timeout_s), connector=aiohttp.TCPConnector(limit=0)
        )
        self._closed_until = 0.0

    async def ask(self, attempt: Attempt[ReadT]) -> ReadT:
        """What `read` makes of a reply with status 200. Raises `WireError` where the endpoint gives none."""
        while True:
            await self._wait_for_opening()
            attempt.tries += 1
            try:
                return await self._try(attempt)
            except WireError as refusal:
                wait_s = self._wait_s(attempt.tries, refusal)
                if not refusal.again or attempt.begun() or attempt.tries == self._config.tries or wait_s is None:
                    raise
                asked = refusal.retry_after_s is not None
            if asked:  # by the endpoint, of everybody
                self._closed_until = max(self._closed_until, time.monotonic() + wait_s)
            else:
                await asyncio.sleep(wait_s)

    async def models(self) -> bytes:
        """The endpoint's list of models; raises `WireError`."""
        try:
            async with self._session.get(f"{self._config.url}/models", headers=self._headers) as response:
                content = await response.read()
                if response.status != 200:
                    raise _refusal(response, content)
                return content
        except (TimeoutError, aiohttp.ClientError) as failure:
            raise _unreachable(failure) from failure

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    async def _wait_for_opening(self) -> None:
        while (wait_s := self._closed_until - time.monotonic()) > 0:  # noqa: ASYNC110 - another wait may have come
            await asyncio.sleep(wait_s)

    async def _try(self, attempt: Attempt[ReadT]) -> ReadT:
        url = self._config.url + PATHS[attempt.request.kind]
        try:
            async with self._session.post(url, data=attempt.content, headers=self._headers) as response:
                if response.status != 200:
                    raise _refusal(response, await response.read())
                return await attempt.read(attempt, response)
        except CutError as cut:
            raise WireError(502, "provider_protocol_error", str(cut), again=True) from cut
        except (TimeoutError, aiohttp.ClientError) as failure:
            raise _unreachable(failure) from failure

    def _wait_s(self, tries: int, refusal: WireError) -> float | None:
        """How long to wait before the next try; `None` where the endpoint asks for more than is waited for."""
        if refusal.retry_after_s is None:
            return float(_FIRST_WAIT_S * 2 ** (tries - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        return refusal.retry_after_s if refusal.retry_after_s <= self._config.longest_wait_s else None


def _refusal(response: aiohttp.ClientResponse, content: bytes) -> WireError:
    """The endpoint's own refusal, with its words where it has any."""
    code, message = "provider_error", f"the endpoint answered with status {response.status}"
    with suppress(orjson.JSONDecodeError, KeyError, TypeError, AttributeError):  # without words the status says enough
        told = orjson.loads(content)["error"]
        code, message = str(told.get("code") or code), str(told.get("message") or message)
    again = response.status in _RETRIED and code != "insufficient_quota"
    return WireError(response.status, code, message[:1000], retry_after_s=retry_after_s(response.headers), again=again)


def _unreachable(failure: Exception) -> WireError:
    if isinstance(failure, TimeoutError):
        return WireError(504, "provider_timeout", "the endpoint did not answer in time", again=True)
    return WireError(
        502, "provider_unreachable", f"the endpoint cannot be reached: {type(failure).__name__}", again=True
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds until the endpoint wants to be asked again, from `retry-after-ms` or `Retry-After` in both its forms.

    RFC 9110, section 10.2.3: a number of seconds, or a date. `None` where neither can be read, or is no wait: negative,
    or without end.
    """
    for name, unit_s in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            wait_s = float(headers[name]) / unit_s
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait_s) and wait_s >= 0:
            return wait_s
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None
