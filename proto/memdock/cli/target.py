"""Whom a command speaks to, and in which form it answers."""

from dataclasses import dataclass, field

from memdock.sync_client import Client, connect
from memdock.tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The options that stand before the command."""

    url: str
    system: str
    key: str = field(repr=False)
    timeout_s: float
    tls: Tls | None
    as_json: bool

    def connect(self) -> Client:
        """A client of the address."""
        return connect(self.url, system=self.system, key=self.key, timeout_s=self.timeout_s, tls=self.tls)
