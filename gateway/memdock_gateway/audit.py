"""The audit file: who erased what, when. Append-only JSON lines, each on the disk before the call goes on.

An erasure leaves two lines with one `request_id`: `asked` before it is passed on, `answered` after. Where the second is
missing, the gateway died in between and the system finished or not. When a line cannot be written nothing is erased.
"""

import asyncio
import errno
import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import structlog

from memdock.errors import MemdockError, error
from memdock_gateway.exchange import Exchange

AUDITED = frozenset({"Forget", "Reset"})


class Audit:
    """Writes the file; one for the process."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._on_disk = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self._one_at_a_time = asyncio.Lock()

    async def asked(self, exchange: Exchange, space: str, request: Any) -> None:
        """Before the system sees the call. `space` is the hashed name, the only one that is kept.

        Raises INTERNAL when the line cannot be written: then the call must not go on.
        """
        try:
            await self._append(exchange, space, {"stage": "asked", **_what(request)})
        except OSError:
            raise error("INTERNAL", "the audit file cannot be written; nothing is erased without it") from None

    async def answered(self, exchange: Exchange, space: str, outcome: Any) -> None:
        """After; `outcome` is the answer, or the exception that stands for it. A line that is lost changes neither."""
        with suppress(OSError):
            await self._append(exchange, space, {"stage": "answered", **_result(outcome)})

    def close(self) -> None:
        """Closes the file. A line that comes later is refused, rather than written to what has its number by then."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    async def _append(self, exchange: Exchange, space: str, entry: dict[str, Any]) -> None:
        who = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request_id": exchange.request_id,
            "tenant": exchange.tenant,
            "key_id": exchange.key_id,
            "system": exchange.system,
            "method": exchange.method,
            "space": space,
        }
        line = orjson.dumps(who | entry, option=orjson.OPT_APPEND_NEWLINE)
        async with self._one_at_a_time:
            try:
                await asyncio.to_thread(self._write, line)
            except OSError as problem:
                structlog.get_logger().error("audit_not_written", problem=os.strerror(problem.errno or errno.EIO))
                raise

    def _write(self, line: bytes) -> None:
        if os.write(self._descriptor, line) != len(line):
            raise OSError(errno.ENOSPC, "the line was cut")
        if self._on_disk:
            os.fsync(self._descriptor)


def _what(request: Any) -> dict[str, Any]:
    if not hasattr(request, "selector"):
        return {}
    selected = {
        name: len(ids) for name in ("memory_ids", "turn_ids", "session_ids") if (ids := getattr(request.selector, name))
    }
    return {"dry_run": request.dry_run, "selected": selected}


def _result(outcome: Any) -> dict[str, Any]:
    if isinstance(outcome, MemdockError):
        return {"outcome": outcome.reason}
    if isinstance(outcome, BaseException):
        return {"outcome": "CANCELLED" if isinstance(outcome, asyncio.CancelledError) else "INTERNAL"}
    residual_items = sum(part.items for part in outcome.residual)
    if hasattr(outcome, "erased_turn_ids"):
        erased = {"memories": len(outcome.erased_memory_ids), "turns": len(outcome.erased_turn_ids)}
        return {"outcome": "OK", "erased": erased, "not_found": len(outcome.not_found), "residual": residual_items}
    erased = {"memories": outcome.erased_memories, "turns": outcome.erased_turns}
    return {"outcome": "OK", "erased": erased, "residual": residual_items}
