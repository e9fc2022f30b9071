"""Whom a command speaks to, and in which form it answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memdock.errors import MemdockError, NotFoundError
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

    @contextmanager
    def connect(self) -> Iterator[Client]:
        """A client of the address; an error about the system's name says which names there are."""
        with connect(self.url, system=self.system, key=self.key, timeout_s=self.timeout_s, tls=self.tls) as client:
            try:
                yield client
            except NotFoundError as error:
                if error.reason == "SYSTEM_NOT_FOUND" and (names := _systems(client)):
                    said = f"there is no system {self.system!r} here" if self.system else "no system was named"
                    raise NotFoundError(error.reason, f"{said}; choose with --system: {', '.join(names)}") from error
                raise


def _systems(client: Client) -> list[str]:
    """Those of a gateway that the key may use; none where nobody tells them: a lone server has no such call."""
    try:
        return [one.system for one in client.list_systems()]
    except MemdockError:
        return []
