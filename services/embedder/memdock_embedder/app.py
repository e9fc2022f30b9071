"""The HTTP face: `/v1/embeddings`, `/v1/models`, `/livez`, `/readyz`, `/metrics`."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from aiohttp import web

from memdock_embedder.backends import Embedder, EmbedderError
from memdock_embedder.wire import Limits, RequestError, read_request, write_answer, write_error

STATUS = {
    "PROVIDER_RATE_LIMITED": 429,
    "PROVIDER_TIMEOUT": 504,
    "PROVIDER_UNREACHABLE": 503,
    "PROVIDER_AUTH_FAILED": 502,
    "PROVIDER_PROTOCOL_ERROR": 502,
}
log = structlog.get_logger("memdock.embedder")


@dataclass(slots=True)
class Counters:
    """What `/metrics` tells."""

    requests: int = 0
    failures: int = 0
    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def exposition(self) -> str:
        """Prometheus' text format."""
        names = ("requests", "failures", "texts", "tokens", "seconds")
        return "".join(
            f"# TYPE memdock_embedder_{name}_total counter\nmemdock_embedder_{name}_total {getattr(self, name)}\n"
            for name in names
        )


class Face:
    """The routes over one embedder."""

    def __init__(self, embedder: Embedder, limits: Limits) -> None:
        self._embedder = embedder
        self._limits = limits
        self._counters = Counters()

    def app(self) -> web.Application:
        """The application that aiohttp serves."""
        app = web.Application(client_max_size=self._limits.max_request_bytes, middlewares=[_plain_errors])
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/livez", self._alive)
        app.router.add_get("/readyz", self._alive)
        app.router.add_get("/metrics", self._metrics)
        return app

    async def _embeddings(self, request: web.Request) -> web.Response:
        started = time.perf_counter()
        self._counters.requests += 1
        try:
            body = await request.read()
            wanted = read_request(
                body, model=self._embedder.model, dimension=self._embedder.dimension, limits=self._limits
            )
            embedded = await self._embedder.embed(wanted.texts, wanted.input_type)
        except RequestError as error:
            self._counters.failures += 1
            return _error(400, str(error), kind="invalid_request_error", param=error.param)
        except EmbedderError as error:
            self._counters.failures += 1
            log.warning("embeddings", reason=error.reason)
            wait_s = error.retry_after_s
            return _error(
                STATUS.get(error.reason, 500), error.message, kind="server_error", code=error.reason, wait_s=wait_s
            )
        seconds = time.perf_counter() - started
        self._counters.texts += len(wanted.texts)
        self._counters.tokens += embedded.tokens
        self._counters.seconds += seconds
        log.info("embeddings", texts=len(wanted.texts), tokens=embedded.tokens, ms=round(seconds * 1000, 1))
        answer = write_answer(embedded, model=self._embedder.model, as_base64=wanted.base64)
        return web.Response(body=answer, content_type="application/json")

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {"object": "list", "data": [{"id": self._embedder.model, "object": "model", "owned_by": "memdock"}]}
        )

    async def _alive(self, _request: web.Request) -> web.Response:
        # The model is loaded before the port is opened, so an answer means that the server can serve.
        return web.json_response({"status": "ok", "model": self._embedder.model, "dimension": self._embedder.dimension})

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(text=self._counters.exposition(), content_type="text/plain")


def _error(
    status: int,
    message: str,
    *,
    kind: str,
    param: str | None = None,
    code: str | None = None,
    wait_s: float | None = None,
) -> web.Response:
    headers = {"Retry-After": f"{wait_s:g}"} if wait_s is not None else {}
    body = write_error(message, kind=kind, param=param, code=code)
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


@web.middleware
async def _plain_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turns aiohttp's own refusals and our faults into the JSON that clients of this wire read."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return _error(413, "the request is too large", kind="invalid_request_error")
    except web.HTTPException as refusal:
        return _error(refusal.status, refusal.reason, kind="invalid_request_error")
    except Exception:
        log.exception("request failed", path=request.path)
        return _error(500, "the server failed; its log says why", kind="server_error")
