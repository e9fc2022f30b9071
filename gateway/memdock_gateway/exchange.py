"""The record of one call while it is inside the gateway: what logs, metrics and traces may tell, and nothing else."""

from contextvars import ContextVar
from dataclasses import dataclass

from opentelemetry.trace import Span

from memdock.keys import Key


@dataclass(slots=True, kw_only=True)
class Exchange:
    """Ids and times of one call; never a text, a key or a space id. Seconds throughout."""

    method: str
    request_id: str
    # W3C `traceparent` for the next hop; empty: none.
    trace_parent: str = ""
    # Of the call, where it is sampled.
    span: Span | None = None
    # Whether it came before the gateway began to stop, which then waits for it.
    let_in: bool = False
    # Who calls; `None` until that is known.
    key: Key | None = None
    # Empty until the name is known to be a configured one: a caller's words never become a label.
    system: str = ""
    retries: int = 0
    queue_s: float = 0.0
    upstream_s: float = 0.0

    @property
    def tenant(self) -> str:
        """Whose call it is; empty until that is known."""
        return self.key.tenant if self.key else ""

    @property
    def key_id(self) -> str:
        """With which key it came; empty until that is known."""
        return self.key.key_id if self.key else ""

    def own_s(self, total_s: float) -> float:
        """The gateway's part of the call: neither in the queue nor in the system."""
        return max(0.0, total_s - self.queue_s - self.upstream_s)


# Each call has a task of its own on both faces, so its record travels with it from admission to the last log line.
current: ContextVar[Exchange | None] = ContextVar("memdock_gateway_exchange", default=None)
