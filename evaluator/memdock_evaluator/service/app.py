"""The HTTP face of the service: routes, their shapes, and errors as problem documents."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from memdock.callers import Callers
from memdock.errors import InvalidArgumentError, MemdockError, error
from memdock.face import read_call
from memdock.keys import EVALUATION_CALLS, Key
from memdock_evaluator.baselines import BASELINES
from memdock_evaluator.service import shapes
from memdock_evaluator.service.bodies import plan_text, resume
from memdock_evaluator.service.desk import Desk
from memdock_evaluator.service.faults import PlanError
from memdock_evaluator.service.files import KINDS, REPORTS, TABLE, TABLE_KINDS, Files, report_policy
from memdock_evaluator.service.links import Links
from memdock_evaluator.service.metrics import Metrics
from memdock_evaluator.service.offer import Offer
from memdock_evaluator.service.pages import pages
from memdock_evaluator.service.plans import TAKEN
from memdock_evaluator.service.problems import invalid, problem
from memdock_evaluator.service.spaces import give_back
from memdock_evaluator.service.systems import Systems
from memdock_evaluator.service.watch import TERMINAL, Seen, Watch

RunId = Annotated[str, Path(max_length=64, description="As POST /v1/runs gave it.")]

MAX_WATCHING = 256
_PLAN_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The fields of a file of `memdock-eval run --plan`; models by name in `answerer` and `judge`.",
        "content": {
            kind: {"schema": {"type": "object", "propertyNames": {"enum": list(TAKEN)}}}
            for kind in ("application/json", "application/yaml")
        },
    }
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "The request was refused or failed; the status tells which.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What stands behind the face. `wake`: there may be a run to take. `ready`: as of `pages`."""

    callers: Callers
    desk: Desk
    files: Files
    links: Links
    watch: Watch
    offer: Offer
    systems: Systems
    metrics: Metrics
    wake: Callable[[], None]
    ready: Callable[[], Awaitable[bool]]


def http_app(parts: Parts) -> FastAPI:
    """The application."""
    app = FastAPI(
        title="Memdock evaluation",
        version=version("memdock-evaluator"),
        description="Runs of `memdock-eval`, started, followed and read over HTTP.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=_PROBLEMS,
    )
    app.include_router(_Routes(parts).router())
    app.router.routes.extend(pages(parts.metrics, parts.ready))
    for kind in (MemdockError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]  # FastAPI's own way to change it
    return app


class _Routes:
    """The calls of `/v1`. Files are waited for on other threads."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._computing = asyncio.Semaphore(2)  # comparisons and checks hold all rows of a run

    def router(self) -> APIRouter:
        router = APIRouter(prefix="/v1")
        read, start, end = (Depends(self._caller(call)) for call in EVALUATION_CALLS)
        one = "/runs/{run_id}"
        parts = self._parts

        @router.get("/offer", summary="What a plan may name")
        async def get_offer(key: Annotated[Key, read]) -> shapes.Offer:
            return await self._offer(key)

        @router.post("/estimates", summary="What a run would ask and cost", openapi_extra=_PLAN_BODY)
        async def estimate(key: Annotated[Key, read], request: Request) -> shapes.Estimate:
            text = await plan_text(request)
            async with self._computing:
                return await asyncio.to_thread(parts.desk.estimate, key, text)

        @router.post("/runs", status_code=201, summary="Start a run", openapi_extra=_PLAN_BODY)
        async def start_run(
            key: Annotated[Key, start],
            request: Request,
            response: Response,
            idempotency_key: Annotated[
                str, Header(description="The client's own id: the same one starts no second run.", max_length=128)
            ] = "",
        ) -> shapes.Run:
            run = await asyncio.to_thread(parts.desk.start, key, await plan_text(request), idempotency_key)
            parts.wake()
            response.headers["Location"] = f"/v1/runs/{run.run_id}"
            return run

        @router.get("/runs", summary="The tenant's runs, the newest first")
        async def list_runs(
            key: Annotated[Key, read],
            state: shapes.State | None = None,
            page_size: Annotated[int, Query(ge=1, le=100)] = 20,
            page_token: Annotated[str, Query(max_length=64)] = "",
        ) -> shapes.Runs:
            return await asyncio.to_thread(parts.desk.runs, key, state=state, size=page_size, after=page_token)

        @router.get(one, summary="One run")
        async def get_run(key: Annotated[Key, read], run_id: RunId) -> shapes.Run:
            return await asyncio.to_thread(parts.desk.run, key, run_id)

        @router.post(
            one + "/resume",
            summary="Go on with a run that ended before it was complete",
            openapi_extra={
                "requestBody": {"content": {"application/json": {"schema": shapes.Resume.model_json_schema()}}}
            },
        )
        async def resume_run(key: Annotated[Key, start], run_id: RunId, request: Request) -> shapes.Run:
            how = await resume(request)
            run = await asyncio.to_thread(parts.desk.resume, key, run_id, how.budget)
            parts.wake()
            return run

        @router.post(one + "/cancel", summary="End a run that waits or runs")
        async def cancel_run(key: Annotated[Key, end], run_id: RunId) -> shapes.Run:
            return await asyncio.to_thread(parts.desk.cancel, key, run_id)

        @router.delete(one, status_code=204, summary="Remove a run that has ended, with its results")
        async def remove_run(
            key: Annotated[Key, end],
            run_id: RunId,
            leave_spaces: Annotated[
                bool, Query(description="Do not give back what a run that was not completed has stored at systems.")
            ] = False,
        ) -> None:
            left = None if leave_spaces else await asyncio.to_thread(parts.desk.spaces, key, run_id)
            if left is not None:
                await give_back(*left)
            await asyncio.to_thread(parts.desk.remove, key, run_id)

        @router.get(
            one + "/events",
            summary="Follow a run",
            description="Server-sent events `message`, `progress`, `state` and, last, `end`.",
            response_class=StreamingResponse,
            responses={200: {"content": {"text/event-stream": {}}}, 204: {"description": "`end` was sent before."}},
        )
        async def watch_run(
            key: Annotated[Key, read],
            run_id: RunId,
            request: Request,
            last_event_id: Annotated[str, Header(max_length=32, description="Go on behind this event.")] = "",
        ) -> Response:
            return await self._events(key, run_id, Seen.read(last_event_id), lambda: self._caller("ReadRuns")(request))

        @router.get(
            one + "/report",
            summary="The report, a page",
            response_class=Response,
            responses={200: {"content": {"text/html": {}}}},
        )
        async def get_report(
            request: Request,
            run_id: RunId,
            lang: Literal["en", "ru"] = "en",
            ticket: Annotated[str, Query(max_length=256, description="Of POST .../report/links.")] = "",
        ) -> Response:
            tenant = parts.links.tenant(ticket, run_id) if ticket else (self._caller("ReadRuns")(request)).tenant
            return await self._report(tenant, run_id, lang)

        @router.post(one + "/report/links", status_code=201, summary="An address of the report that needs no key")
        async def link_report(
            key: Annotated[Key, read], run_id: RunId, lang: Literal["en", "ru"] = "en"
        ) -> shapes.Link:
            return await asyncio.to_thread(self._link, key, run_id, lang)

        for name, kind in KINDS.items():
            self._serve(router, one, name, kind, read)

        @router.get(one + "/tables", summary="The names of the tables")
        async def list_tables(key: Annotated[Key, read], run_id: RunId) -> list[str]:
            return await asyncio.to_thread(lambda: parts.files.tables(parts.desk.place(key, run_id)))

        @router.get(one + "/tables/{name}", summary="A table", response_class=Response)
        async def get_table(
            key: Annotated[Key, read], run_id: RunId, name: Annotated[str, Path(pattern=f"^{TABLE.pattern}$")]
        ) -> Response:
            read_table = lambda: parts.files.read(parts.desk.place(key, run_id), f"tables/{name}")  # noqa: E731
            content = await asyncio.to_thread(read_table)
            return Response(content, media_type=TABLE_KINDS[name.rpartition(".")[2]])

        @router.post(one + "/verify", summary="Check the files of a run against each other")
        async def verify_run(key: Annotated[Key, read], run_id: RunId) -> shapes.Verified:
            async with self._computing:
                return await asyncio.to_thread(lambda: parts.files.verify(parts.desk.place(key, run_id)))

        @router.get("/compare", summary="The second run minus the first")
        async def compare_runs(
            key: Annotated[Key, read],
            a: Annotated[str, Query(max_length=64, description="The first run.")],
            b: Annotated[str, Query(max_length=64, description="The second run.")],
            a_system: Annotated[str, Query(max_length=128)] = "",
            b_system: Annotated[str, Query(max_length=128)] = "",
        ) -> shapes.Comparison:
            if bool(a_system) != bool(b_system):
                raise PlanError("a_system" if b_system else "b_system", "name a system of each run, or none")
            systems = (a_system, b_system) if a_system else None
            places = await asyncio.to_thread(lambda: [parts.desk.place(key, each) for each in (a, b)])
            async with self._computing:
                return await asyncio.to_thread(parts.files.compare, places[0], places[1], systems)

        return router

    def _serve(self, router: APIRouter, one: str, name: str, kind: str, read: Any) -> None:
        @router.get(
            f"{one}/{name}",
            summary=f"The file {name} of a run",
            operation_id=f"get_{name.replace('.', '_')}",
            response_class=StreamingResponse,
            responses={200: {"content": {kind: {}}}},
        )
        async def get_file(key: Annotated[Key, read], run_id: RunId) -> StreamingResponse:
            pieces = await asyncio.to_thread(self._stream, key, run_id, name)
            return StreamingResponse(pieces, media_type=kind)

    def _stream(self, key: Key, run_id: str, name: str) -> Iterator[bytes]:
        return self._parts.files.stream(self._parts.desk.place(key, run_id), name)

    def _caller(self, call: str) -> Callable[[Request], Key]:
        def caller(request: Request) -> Key:
            if request.headers.getlist("authorization")[1:]:
                raise InvalidArgumentError("MALFORMED_REQUEST", "authorization: this header is given more than once")
            key = self._parts.callers.identify(read_call(dict(request.headers), None).credential)
            request.state.key = key
            key.allow(call=call)
            return key

        return caller

    async def _offer(self, key: Key) -> shapes.Offer:
        offer = self._parts.offer
        return shapes.Offer(
            data=await asyncio.to_thread(offer.data_names),
            systems=[name for name in await self._parts.systems.names() if _allows(key, "StartRuns", name)],
            baselines=list(BASELINES),
            answerers=list(offer.models.answerers),
            judges=list(offer.models.judges),
            budget_ceiling=offer.ceiling,
            most_questions=offer.most_questions,
            currency=offer.prices.currency,
            fields=list(TAKEN),
            may=[call for call in EVALUATION_CALLS if _allows(key, call)],
        )

    async def _events(self, key: Key, run_id: str, seen: Seen, allowed: Callable[[], Key]) -> Response:
        run = await asyncio.to_thread(self._parts.desk.run, key, run_id)
        if seen.ended and seen.attempt == run.attempt and run.state in TERMINAL:
            return Response(status_code=204)
        if self._parts.watch.watching >= MAX_WATCHING:
            raise error("RATE_LIMITED", "too many follow runs at this server; try again later", retry_after_s=30)
        events = self._parts.watch.events(key, run_id, seen, allowed)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_closing(events), media_type="text/event-stream", headers=headers)

    async def _report(self, tenant: str, run_id: str, lang: str) -> Response:
        holder = Key(key_id="", tenant=tenant, systems=(), spaces=(), calls=(), created=datetime.now(UTC))
        files, desk = self._parts.files, self._parts.desk
        page = await asyncio.to_thread(lambda: files.read(desk.place(holder, run_id), REPORTS[lang]))
        headers = {"content-security-policy": report_policy(page), "cache-control": "no-store"}
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)

    def _link(self, key: Key, run_id: str, lang: str) -> shapes.Link:
        self._parts.desk.place(key, run_id)
        ticket, expires = self._parts.links.sign(key.tenant, run_id)
        path = f"/v1/runs/{run_id}/report?lang={lang}&ticket={ticket}"
        return shapes.Link(path=path, expires=datetime.fromtimestamp(expires, UTC))


async def _closing(events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The events, whose generator is closed at once when the client leaves, and not when somebody collects it."""
    try:
        async for event in events:
            yield event
    finally:
        await events.aclose()


def _allows(key: Key, call: str, system: str | None = None) -> bool:
    try:
        key.allow(call=call, system=system)
    except MemdockError:
        return False
    return True


async def _invalid(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, RequestValidationError)
    return await problem(request, invalid(fault.errors()))


def _document(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document with what it does not know: keys, and that its own form of an error is never sent."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = shapes.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schemas["Problem"].pop("$defs")
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        app.openapi_schema = document
    return app.openapi_schema
