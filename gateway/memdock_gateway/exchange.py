"""The record of one call while it is inside the gateway: what logs, metrics and traces may tell, and nothing else."""

import time
from dataclasses import dataclass, field

from memdock.service import Method


@dataclass(slots=True, kw_only=True)
class Exchange:
    """Ids and times of one call; never a text, a key or a space id. Seconds throughout."""

    method: Method
    face: str
    request_id: str
    # W3C `traceparent` for the next hop; empty: none.
    trace_parent: str = ""
    tenant: str = ""
    key_id: str = ""
    # Empty until the name is known to be a configured one: a caller's words never become a label.
    system: str = ""
    retries: int = 0
    queue_s: float = 0.0
    upstream_s: float = 0.0
    started_s: float = field(default_factory=time.perf_counter)

    def total_s(self) -> float:
        """Seconds since the call came in."""
        return time.perf_counter() - self.started_s

    def own_s(self) -> float:
        """The gateway's part of that: neither in the queue nor in the system."""
        return max(0.0, self.total_s() - self.queue_s - self.upstream_s)
