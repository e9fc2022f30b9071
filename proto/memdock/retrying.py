"""A service around a service that tries again what may succeed: every call of the protocol is safe to repeat."""

import asyncio
import copy
import random
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from memdock.errors import MemdockError, UnavailableError
from memdock.service import Call, Method, Service
from memdock.v1 import memory_pb2 as pb

MAX_RETRIES = 3
FIRST_DELAY_S = 0.1
MAX_DELAY_S = 2.0

Sleep = Callable[[float], Awaitable[None]]


class Retrying:
    """Retries UNAVAILABLE, and any error that says when to come back, at most three times and within the deadline.

    Never what was tried again already on the way (`retried`): layers that all retry would multiply the calls just when
    there are too many (Beyer et al., "Site Reliability Engineering", chapter 21).

    The delay is full jitter (uniform between 0 and a bound that doubles from 0.1 to 2 s; Brooker, "Exponential backoff
    and jitter", 2015), after the time that the error asked for.
    """

    def __init__(self, service: Service, *, sleep: Sleep = asyncio.sleep) -> None:
        self._service = service
        self._sleep = sleep

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """The answer, or the error of the last attempt."""
        request = as_one_erasure(request)
        for attempt in range(MAX_RETRIES):
            try:
                return await self._service.call(method, request, call)
            except MemdockError as error:
                delay_s = retry_delay_s(error, attempt)
                left_s = call.left_s()
                if delay_s is None or (left_s is not None and delay_s >= left_s):
                    raise
            await self._sleep(delay_s)
        return await self._service.call(method, request, call)


def as_one_erasure(request: Any) -> Any:
    """A copy of a Forget or Reset that gives no request id, with one; any other request as it is.

    With it all tries are one erasure. Without it a try after a lost answer, or after IN_PROGRESS, would be an erasure
    of its own: it would take the turns that came meanwhile, and tell what the first one took as not found.
    """
    if not isinstance(request, pb.ForgetRequest | pb.ResetRequest) or request.request_id:
        return request
    named = copy.deepcopy(request)
    named.request_id = secrets.token_hex(16)
    return named


def retry_delay_s(error: MemdockError, attempt: int) -> float | None:
    """Seconds until the attempt after `attempt` (from 0); `None`: trying again does not help."""
    if error.retried or (not isinstance(error, UnavailableError) and error.retry_after_s is None):
        return None
    bound_s = min(MAX_DELAY_S, FIRST_DELAY_S * 2**attempt)
    return (error.retry_after_s or 0.0) + random.uniform(0.0, bound_s)  # noqa: S311  not a secret
