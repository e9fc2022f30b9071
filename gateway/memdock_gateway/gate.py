"""Lets calls in. Both faces ask `admit` before they read or parse a body, then `call`, and tell `observe` the end."""

import asyncio
from collections.abc import Mapping
from typing import Any

from memdock.callers import Callers
from memdock.errors import PermissionDeniedError, UnavailableError, error
from memdock.face import Served
from memdock.keys import Key
from memdock.service import METHODS, Call, Method
from memdock_gateway.exchange import Exchange, current
from memdock_gateway.observe import Observer
from memdock_gateway.readiness import Readiness
from memdock_gateway.router import Router

# For the answers to those who are cut off to get on their way.
GOODBYE_S = 1.0

_LIST_SYSTEMS = METHODS["ListSystems"]


class Gate:
    """A `Service` that knows its callers: who may do what, how many are inside, and whether anybody still comes in."""

    def __init__(self, callers: Callers, router: Router, readiness: Readiness, observer: Observer) -> None:
        self._callers = callers
        self._router = router
        self._readiness = readiness
        self._observer = observer
        self._inside = 0
        self._working: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._cut_off = False
        self._empty = asyncio.Event()

    async def admit(self, method: Method, path: Mapping[str, str], call: Call) -> None:
        """Refuses a caller without a good key, or whose key does not fit the call or the names in its path."""
        exchange = self._observer.begin(method, call)
        current.set(exchange)
        if self._closed:
            raise _draining()
        exchange.let_in = True
        self._inside += 1
        key = exchange.key = self._callers.identify(call.credential)
        key.allow(call=method.name, system=path.get("system"), space_id=path.get("space_id"))

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """The answer of the system that the request names, or of the gateway itself to ListSystems."""
        exchange = current.get()
        if exchange is None or exchange.key is None:
            raise error("CREDENTIAL_MISSING", "the call was not admitted")
        task = asyncio.current_task()
        assert task is not None
        self._working.add(task)
        try:
            if method is _LIST_SYSTEMS:
                return await self._list_systems(exchange.key)
            exchange.key.allow(call=method.name, system=request.system, space_id=getattr(request, "space_id", None))
            return await self._router.call(method, request, call, exchange)
        except asyncio.CancelledError:
            if self._cut_off:
                raise _draining() from None
            raise
        finally:
            self._working.discard(task)

    def observe(self, served: Served) -> None:
        """The call is over. One that was refused before anybody asked who calls has no record of its own."""
        exchange = current.get()
        if exchange is None:
            exchange = Exchange(method=served.method, request_id=served.request_id)
        elif exchange.let_in:
            self._inside -= 1
            if self._inside == 0:
                self._empty.set()
        self._observer.end(exchange, served)

    async def check_ready(self) -> Mapping[str, bool]:
        """Each system's readiness. Raises `UnavailableError` while the gateway stops, or when no system is ready."""
        if self._closed:
            raise _draining()
        systems = await self._readiness.of_all()
        if not any(systems.values()):
            raise UnavailableError("ADAPTER_UNREACHABLE", "none of the systems is ready: " + ", ".join(systems))
        return systems

    async def drain(self, drain_s: float) -> None:
        """Lets nobody in any more, waits at most `drain_s` seconds until everybody has left, and cuts the rest off."""
        self._closed = True
        if await self._left(drain_s):
            return
        self._cut_off = True
        for task in self._working:
            task.cancel()
        await self._left(GOODBYE_S)

    async def _left(self, within_s: float) -> bool:
        if not self._inside:
            return True
        self._empty.clear()
        try:
            async with asyncio.timeout(within_s):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    async def _list_systems(self, key: Key) -> Any:
        names = [name for name in self._router.systems if _may_use(key, name)]
        ready = await self._readiness.of(names)
        return _LIST_SYSTEMS.response(systems=[{"system": name, "ready": ready[name]} for name in names])


def _may_use(key: Key, system: str) -> bool:
    try:
        key.allow(call=_LIST_SYSTEMS.name, system=system)
    except PermissionDeniedError:
        return False
    return True


def _draining() -> UnavailableError:
    return UnavailableError("DRAINING", "the gateway is stopping; another one, or this one later, will answer")
