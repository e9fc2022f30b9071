"""A service over HTTP: one aiohttp session, ProtoJSON both ways."""

import io
from typing import Any
from urllib.parse import quote

import aiohttp
import yarl

from memdock import errors
from memdock.error_wire import UNREACHABLE, error_from_problem
from memdock.service import Call, Method
from memdock.tls import Tls, client_context
from memdock.transport import Endpoint, not_ready, out_of_time, time_left_s
from memdock.wire import MAX_ANSWER_BYTES, answer_from_json, not_of_the_protocol, to_json

KEEP_ALIVE_S = 4.0
"""Shorter than the 5 s after which uvicorn closes an idle connection, so that no call is sent into a dead one."""

WRITTEN_AT_ONCE_BYTES = 2**20


class HttpTransport:
    """The service at an `http://` or `https://` endpoint. To be made inside the event loop that will call."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._root = endpoint.url.rstrip("/")
        tls = client_context(endpoint.tls or Tls()) if endpoint.url.startswith("https") else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """One call; errors as `memdock.errors` has them."""
        headers = self._endpoint.call_headers(call)
        left_s = time_left_s(call)
        if left_s is not None:
            headers["x-timeout-ms"] = str(max(1, int(left_s * 1e3)))
        body = None
        if method.verb == "POST":
            headers["content-type"] = "application/json"
            body = to_json(request)
        status, answer_headers, answer = await self._exchange(
            method.verb, self._url(method, request), headers, body, left_s
        )
        if status != 200:
            raise error_from_problem(status, answer_headers, answer, self._endpoint.label)
        return answer_from_json(method.response, answer)

    async def check_ready(self, timeout_s: float) -> None:
        """Asks `/readyz`."""
        try:
            status, _, _ = await self._exchange("GET", yarl.URL(f"{self._root}/readyz"), {}, None, timeout_s)
        except errors.MemdockError:
            raise not_ready(self._endpoint) from None
        if status != 200:
            raise not_ready(self._endpoint)

    async def close(self) -> None:
        """Closes the session."""
        await self._session.close()

    def _url(self, method: Method, request: Any) -> yarl.URL:
        segments = {name: quote(getattr(request, name), safe="") for name in method.path_fields}
        if "system" in segments:
            segments["system"] = segments["system"] or "-"
        path = method.path.format_map(segments)
        url = yarl.URL(f"{self._root}{path}", encoded=True)
        if method.verb == "POST":
            return url
        query = {field.name: str(value) for field, value in request.ListFields() if field.name not in segments}
        return url.with_query(query)

    async def _exchange(
        self, verb: str, url: yarl.URL, headers: dict[str, str], body: bytes | None, left_s: float | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers with names in lower case, body."""
        timeout = aiohttp.ClientTimeout(total=left_s)
        try:
            async with self._session.request(
                verb, url, headers=headers, data=_payload(body), timeout=timeout, allow_redirects=False
            ) as response:
                answer = await self._read(response)
                return response.status, {key.lower(): value for key, value in response.headers.items()}, answer
        except TimeoutError:
            raise out_of_time() from None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError):
            raise errors.error("ADAPTER_UNREACHABLE", f"{self._endpoint.label}: {UNREACHABLE}") from None
        except aiohttp.ClientError:
            raise not_of_the_protocol(f"{self._endpoint.label} does not speak HTTP as it should") from None

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        parts: list[bytes] = []
        left = MAX_ANSWER_BYTES
        async for part in response.content.iter_any():
            left -= len(part)
            if left < 0:
                raise not_of_the_protocol(f"{self._endpoint.label} sends more than {MAX_ANSWER_BYTES} bytes")
            parts.append(part)
        return b"".join(parts)


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    # aiohttp writes bytes in one go, which past a megabyte it warns of; a file it writes in parts.
    return io.BytesIO(body) if body and len(body) > WRITTEN_AT_ONCE_BYTES else body
