"""Reading the body of a request, bounded in size and time before anything is parsed."""

import asyncio

from pydantic import ValidationError
from starlette.requests import Request

from memdock.errors import ContentTypeError, DeadlineExceededError, PayloadTooLargeError
from memdock_evaluator.service.faults import PlanError
from memdock_evaluator.service.shapes import Resume

MAX_BODY_BYTES = 64 * 1024
BODY_S = 30.0
_PLAN_KINDS = ("application/json", "application/yaml", "application/x-yaml", "text/yaml")


async def plan_text(request: Request) -> str:
    """The text of a plan."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _PLAN_KINDS:
        raise ContentTypeError(
            "CONTENT_TYPE_UNSUPPORTED", "send the plan with Content-Type: application/json or application/yaml"
        )
    try:
        return (await _body(request)).decode()
    except UnicodeDecodeError:
        raise PlanError("plan", "it is not UTF-8 text") from None


async def _body(request: Request) -> bytes:
    """The body of a request; raises PAYLOAD_TOO_LARGE as soon as it is known to be."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    said = f"the body has more than {MAX_BODY_BYTES} bytes"
                    raise PayloadTooLargeError("PAYLOAD_TOO_LARGE", said)
    except TimeoutError:
        late = f"the body did not come within {BODY_S:g} s: send as many bytes as Content-Length says"
        raise DeadlineExceededError("DEADLINE_EXCEEDED", late) from None
    return bytes(body)


async def resume(request: Request) -> Resume:
    """How to go on with a run; without a body, as before."""
    body = await _body(request)
    try:
        return Resume() if not body else Resume.model_validate_json(body)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False, include_context=False)[0]
        raise PlanError(".".join(map(str, first["loc"])) or "body", first["msg"]) from None
