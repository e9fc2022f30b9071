"""From a call that was let in to the system that answers it, under the name that the space has there."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from memdock.errors import error
from memdock.service import Call, Method
from memdock.types import Limits
from memdock_gateway.audit import AUDITED, Audit
from memdock_gateway.exchange import Exchange
from memdock_gateway.upstream import Upstream

# A Flush waits for at most this share of its caller's deadline, and the gateway is the adapter's caller.
FLUSH_SHARE = 0.95
_NUMBERS = [limit.name for limit in fields(Limits) if limit.name != "max_wait_s"]


class Router:
    """Routes by `request.system`. Requests are changed in place: they become the adapter's."""

    def __init__(self, upstreams: Mapping[str, Upstream], limits: Limits, audit: Audit | None) -> None:
        self._upstreams = upstreams
        self._limits = limits
        self._audit = audit

    @property
    def systems(self) -> list[str]:
        """The configured names, in their order."""
        return list(self._upstreams)

    async def call(self, method: Method, request: Any, call: Call, exchange: Exchange) -> Any:
        """The system's answer; `exchange.tenant` tells whose space it is."""
        upstream = self._upstreams.get(request.system)
        if upstream is None:
            raise error("SYSTEM_NOT_FOUND", "no system of that name is configured here; ListSystems tells the names")
        exchange.system = upstream.name
        request.system = ""
        if method.name == "Describe":
            return self._as_seen_here(await upstream.call(method, request, call, exchange), upstream)
        request.space_id = upstream.names.name(exchange.tenant, request.space_id)
        if self._audit is None or method.name not in AUDITED:
            return await upstream.call(method, request, call, exchange)
        return await self._audited(self._audit, upstream, method, request, call, exchange)

    async def _audited(
        self, audit: Audit, upstream: Upstream, method: Method, request: Any, call: Call, exchange: Exchange
    ) -> Any:
        space = request.space_id
        await audit.asked(exchange, space, request)
        try:
            answer = await upstream.call(method, request, call, exchange)
        except BaseException as problem:
            await audit.answered(exchange, space, problem)
            raise
        await audit.answered(exchange, space, answer)
        return answer

    def _as_seen_here(self, description: Any, upstream: Upstream) -> Any:
        """The system by its configured name, with the limits that hold on the whole way."""
        description.system = upstream.name
        limits = description.limits
        for name in _NUMBERS:
            own = getattr(self._limits, name)
            setattr(limits, name, min(own, getattr(limits, name) or own))
        wait_s = min(limits.max_wait.ToNanoseconds() / 1e9, FLUSH_SHARE * upstream.deadline_s)
        limits.max_wait.FromNanoseconds(round(wait_s * 1e9))
        return description
