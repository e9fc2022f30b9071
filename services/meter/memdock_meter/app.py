"""The HTTP face: OpenAI's wire for each system and space, `/usage`, `/livez`, `/readyz`, `/metrics`."""

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict

import structlog
from aiohttp import web

from memdock_meter.meter import EVENTS, CallerLeftError, Meter
from memdock_meter.wire import Kind, WireError, read_request

MAX_REQUEST_BYTES = 32 << 20
SPACE_HEADER = "X-Memdock-Space"
USAGE_HEADER = "X-Memdock-Usage"
"""Of an answer that is not streamed: what it took. A replayed one took no request."""

_SPACE = re.compile(r"[!-~]{1,256}")
log = structlog.get_logger("memdock.meter")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Face:
    """The routes over a meter. `keys`: each system's secret, "" where it needs none.

    A system is named by its key or by the path `/s/SYSTEM/...`; a space by `/s/SYSTEM/t/SPACE/...` or by the header
    `X-Memdock-Space`.
    """

    def __init__(self, meter: Meter, keys: Mapping[str, str]) -> None:
        self._meter = meter
        self._keys = keys

    def app(self) -> web.Application:
        """The application that aiohttp serves."""
        app = web.Application(client_max_size=MAX_REQUEST_BYTES, middlewares=[_plain_errors])
        for prefix in ("", "/s/{system}", "/s/{system}/t/{space}"):
            app.router.add_post(f"{prefix}/v1/chat/completions", self._calls("chat"))
            app.router.add_post(f"{prefix}/v1/embeddings", self._calls("embeddings"))
            app.router.add_get(f"{prefix}/v1/models", self._models)
            app.router.add_get(f"{prefix}/usage", self._usage)
            app.router.add_delete(f"{prefix}/recordings", self._forget)
        app.router.add_get("/livez", self._alive)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        return app

    def _calls(self, kind: Kind) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._call(request, kind)

        return handle

    async def _call(self, request: web.Request, kind: Kind) -> web.StreamResponse:
        system, space = self._system(request), _space(request)
        wanted = read_request(await request.read(), system=system, space=space, kind=kind)
        stream = web.StreamResponse(headers={"Content-Type": EVENTS, "Cache-Control": "no-store"})

        async def send(piece: bytes) -> None:
            if not stream.prepared:
                await stream.prepare(request)
            await stream.write(piece)

        try:
            answer = await self._meter.call(wanted, send)
        except CallerLeftError:
            return stream
        except WireError as error:
            log.warning("call", system=system, kind=kind, status=error.status, code=error.code)
            if stream.prepared:  # a part is out: only a broken connection says that the rest does not come
                assert request.transport is not None
                request.transport.abort()
                return stream
            raise
        if stream.prepared:
            await stream.write_eof()
            return stream
        used = answer.tokens
        told = f"requests={answer.requests} input={used.input} output={used.output} estimated={int(used.estimated)}"
        return web.Response(body=answer.body, content_type=answer.content_type, headers={USAGE_HEADER: told})

    async def _models(self, request: web.Request) -> web.Response:
        system = self._system(request)
        return web.Response(body=await self._meter.upstream(system, "chat").models(), content_type="application/json")

    async def _usage(self, request: web.Request) -> web.Response:
        system, space = self._system(request), _space(request)
        since = request.query.get("since", "0")
        if not re.fullmatch(r"\d{1,12}(\.\d{1,9})?", since):
            raise WireError(400, "bad_since", f"since is {since!r}: give seconds since 1970")
        lines = await self._meter.store.usage(system=system, space=space or None, since=float(since))
        prices = self._meter.prices
        priced = {"date": prices.date.isoformat(), "currency": prices.currency} if prices else None
        return web.json_response(
            {"system": system, "space": space, "prices": priced, "lines": list(map(asdict, lines))}
        )

    async def _forget(self, request: web.Request) -> web.Response:
        system, space = self._system(request), _space(request)
        if not space:
            raise WireError(400, "space_missing", f"name the space: /s/SYSTEM/t/SPACE/recordings, or {SPACE_HEADER}")
        deleted = await self._meter.store.forget(system, space)
        log.info("recordings erased", system=system, deleted=deleted)
        return web.json_response({"deleted": deleted})

    async def _alive(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _ready(self, _request: web.Request) -> web.Response:
        await self._meter.store.usage(system="")
        return web.json_response({"status": "ok"})

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._meter.metrics.exposition(), content_type="text/plain")

    def _system(self, request: web.Request) -> str:
        """Whose call it is; raises `WireError` where nobody says it or the key is another's."""
        named: str | None = request.match_info.get("system")
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        if named is not None and named not in self._keys:
            raise WireError(404, "no_such_system", f"the meter's configuration has no system {named}")
        wanted = self._keys if named is None else {named: self._keys[named]}
        # As bytes: only texts of ASCII can be compared. A header's bytes that are no UTF-8 come as surrogates.
        given = shown.encode(errors="surrogateescape")
        matching = [name for name, key in wanted.items() if key and hmac.compare_digest(key.encode(), given)]
        if matching:
            return matching[0]
        if named and not self._keys[named]:
            return named
        raise WireError(401, "invalid_api_key", "the key is none of this system's: show the one of its key_file")


def _space(request: web.Request) -> str:
    tag = str(request.match_info.get("space") or request.headers.get(SPACE_HEADER, ""))
    if tag and not _SPACE.fullmatch(tag):
        raise WireError(400, "bad_space", "a space's tag has at most 256 visible characters of ASCII")
    return tag


@web.middleware
async def _plain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every refusal as the JSON that clients of this wire read."""
    try:
        return await handler(request)
    except WireError as error:
        return _error(error)
    except web.HTTPRequestEntityTooLarge:
        return _error(WireError(413, "too_large", f"the request has more than {MAX_REQUEST_BYTES >> 20} MiB"))
    except web.HTTPException as refusal:
        said = f"{request.method} {request.path}: {refusal.reason}; chat completions, embeddings and models are served"
        return _error(WireError(refusal.status, "not_served", said))
    except Exception:
        log.exception("call failed", path=request.match_info.route.name)
        return _error(WireError(500, "meter_failed", "the meter failed; its log says why", again=True))


def _error(error: WireError) -> web.Response:
    return web.Response(status=error.status, body=error.body, content_type="application/json", headers=error.headers)
