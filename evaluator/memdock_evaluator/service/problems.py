"""Errors as problem documents, in the form of the gateway's."""

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from memdock.errors import FieldError, InvalidArgumentError, MemdockError, NotFoundError, VerbError
from memdock.face import as_error
from memdock.http_reply import all_headers, problem_reply


async def problem(request: Request, fault: Exception) -> Response:
    """The answer in place of the one that `fault` prevented; what is no error of ours is a bug, and logged."""
    request_id: str = request.state.request_id
    reply = problem_reply(_as_error(fault, request_id), request_id)
    response = Response(reply.body, reply.status)
    response.raw_headers = all_headers(reply, request_id)
    return response


def invalid(errors: Iterable[Mapping[str, Any]]) -> InvalidArgumentError:
    """What pydantic finds wrong with a request's parameters."""
    found = [FieldError(".".join(map(str, each["loc"][1:])) or "body", each["msg"]) for each in errors]
    said = f"{found[0].field}: {found[0].description}"
    return InvalidArgumentError("VALIDATION_FAILED", said, fields=found)


def _as_error(fault: Exception, request_id: str) -> MemdockError:
    if isinstance(fault, ClientDisconnect):
        return InvalidArgumentError("MALFORMED_REQUEST", "the body did not come whole")
    if isinstance(fault, HTTPException) and fault.status_code == 404:
        return NotFoundError("PATH_NOT_FOUND", "there is no such path; /openapi.json lists those that there are")
    if isinstance(fault, HTTPException) and fault.status_code == 405:
        allow = [verb.strip() for verb in (fault.headers or {}).get("Allow", "").split(",")]
        return VerbError(f"this path takes {' or '.join(allow)}", allow)
    if isinstance(fault, HTTPException):
        return InvalidArgumentError("MALFORMED_REQUEST", "the request cannot be read")
    return as_error(fault, "", request_id)
