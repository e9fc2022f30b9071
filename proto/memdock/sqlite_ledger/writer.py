"""One thread that writes: it commits all jobs that wait in one transaction, so that many callers share one fsync.

The event loop never waits for a disk. Each job runs in a savepoint of its own: one that raises takes back only itself.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from memdock.errors import UnavailableError
from memdock.sqlite_ledger.files import is_of_the_disk

_MAX_GROUP = 128

_log = structlog.get_logger(__name__)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    work: Callable[[sqlite3.Connection], Any]
    done: asyncio.Future[Any]
    alone: bool = False


class Writer:
    """Runs jobs on the writing connection, in the order in which they were handed in; it closes that at its end."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[_Job] = deque()
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="ledger-writer", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """The result of `work(connection)`, after its commit."""
        return await self._hand_in(work, alone=False)

    async def run_alone(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """The result of `work(connection)` outside of any transaction, for what SQLite does not allow inside one."""
        return await self._hand_in(work, alone=True)

    async def close(self) -> None:
        """Ends after the jobs that were handed in."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)
        self._connection.close()

    async def _hand_in(self, work: Callable[[sqlite3.Connection], Result], *, alone: bool) -> Result:
        done: asyncio.Future[Result] = self._loop.create_future()
        with self._changed:
            if self._closing:
                raise UnavailableError("DRAINING", "The ledger is closed; the server is ending.")
            self._jobs.append(_Job(work=work, done=done, alone=alone))
            self._changed.notify()
        return await done

    def _serve(self) -> None:
        while group := self._next_group():
            if group[0].alone:
                self._deliver([(group[0], *_attempt(group[0], self._connection))])
            else:
                self._deliver(self._commit(group))

    def _next_group(self) -> list[_Job]:
        with self._changed:
            while not self._jobs and not self._closing:
                self._changed.wait()
            group: list[_Job] = []
            while self._jobs and len(group) < _MAX_GROUP and not (group and (group[0].alone or self._jobs[0].alone)):
                group.append(self._jobs.popleft())
            return group

    def _commit(self, group: list[_Job]) -> list[tuple[_Job, Any, Exception | None]]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            results = [(job, *self._in_savepoint(job)) for job in group]
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            return [(job, None, _unreachable(error)) for job in group]
        return results

    def _in_savepoint(self, job: _Job) -> tuple[Any, Exception | None]:
        self._connection.execute("SAVEPOINT job")
        result, error = _attempt(job, self._connection)
        if error is not None:
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")
        return result, error

    def _deliver(self, results: list[tuple[_Job, Any, Exception | None]]) -> None:
        self._loop.call_soon_threadsafe(_resolve, results)


def _attempt(job: _Job, connection: sqlite3.Connection) -> tuple[Any, Exception | None]:
    try:
        return job.work(connection), None
    except Exception as error:  # noqa: BLE001 - it is raised again where the job was handed in
        return None, _unreachable(error) if isinstance(error, sqlite3.Error) and is_of_the_disk(error) else error


def _unreachable(error: sqlite3.Error) -> UnavailableError:
    _log.error("ledger_write_failed", sqlite_error=getattr(error, "sqlite_errorname", type(error).__name__))
    return UnavailableError("STORE_UNREACHABLE", "The ledger cannot be written; look at its disk.", retry_after_s=1.0)


def _resolve(results: list[tuple[_Job, Any, Exception | None]]) -> None:
    for job, result, error in results:
        if job.done.done():  # its caller has left; the work is committed all the same
            continue
        if error is None:
            job.done.set_result(result)
        else:
            job.done.set_exception(error)
