"""The HTTP face: a FastAPI application that documents itself and hands the calls of the protocol to `HttpFace`.

The calls are plain ASGI below FastAPI: its own handling of a request costs half as much again as the whole call, and
its answers to a wrong path, verb or body are not problem documents.
"""

import time
from collections.abc import MutableMapping
from typing import Any

import orjson
from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memdock.face import read_call
from memdock.face_http import HttpFace
from memdock.http_reply import json_reply, problem_reply, send_reply
from memdock.http_request import read_headers
from memdock.routes import wrong_verb
from memdock_gateway.exchange import current
from memdock_gateway.openapi import openapi


def http_app(face: HttpFace, version: str) -> FastAPI:
    """The application: `/openapi.json`, and everything else by the face, unknown paths and verbs included."""
    app = FastAPI(title="Memdock", version=version, openapi_url=None, docs_url=None, redoc_url=None)
    app.router.routes.append(Route("/openapi.json", _Document(version)))
    calls = _Timed(face)
    app.mount("/", calls)
    app.router.default = calls  # a mount takes no path with a line's end in it, and none without a slash before it
    return app


class _Document:
    """The OpenAPI document. An ASGI application and no function, or FastAPI would take GET alone for its path."""

    def __init__(self, version: str) -> None:
        self._reply = json_reply(orjson.dumps(openapi(version), option=orjson.OPT_INDENT_2))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI gives it
        request_id = read_call(read_headers(scope), None).request_id
        known_verb = scope["method"] in ("GET", "HEAD")
        reply = self._reply if known_verb else problem_reply(wrong_verb("GET", "HEAD"), request_id)
        await send_reply(send, reply, request_id)


class _Timed:
    """Adds the gateway's own part to the header `Server-Timing`."""

    def __init__(self, face: HttpFace) -> None:
        self._face = face

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started_s = time.perf_counter()
        # A request that was pipelined behind another one starts in the other's context.
        current.set(None)

        async def send_timed(message: MutableMapping[str, Any]) -> None:
            exchange = current.get()
            if exchange is not None and message["type"] == "http.response.start":
                own_ms = exchange.own_s(time.perf_counter() - started_s) * 1000
                message["headers"] = [*message["headers"], (b"server-timing", f"gateway;dur={own_ms:.3f}".encode())]
            await send(message)

        await self._face(scope, receive, send_timed)
