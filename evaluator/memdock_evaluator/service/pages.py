"""What asks for no key: health, metrics, and the files of the page for people."""

from collections.abc import Awaitable, Callable
from importlib.resources import files as resources

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memdock_evaluator.service.faults import ResultsUnreachableError
from memdock_evaluator.service.metrics import Metrics

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
}


def pages(metrics: Metrics, ready: Callable[[], Awaitable[bool]]) -> list[Route]:
    """The routes. `ready`: whether the results can be reached; raises where the server ends."""

    async def livez(_: Request) -> Response:
        return JSONResponse({"live": True})

    async def readyz(_: Request) -> Response:
        if not await ready():
            raise ResultsUnreachableError
        return JSONResponse({"ready": True})

    async def figures(_: Request) -> Response:
        return Response(metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def icon(_: Request) -> Response:
        return Response(status_code=204)

    asked = {"/livez": livez, "/readyz": readyz, "/metrics": figures, "/favicon.ico": icon}
    return [
        *(Route(path, answer) for path, answer in asked.items()),
        *(Route(path, _file(name, kind)) for path, (name, kind) in FILES.items()),
    ]


def _file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    content = (resources("memdock_evaluator.service") / "page" / name).read_bytes()
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return answer
