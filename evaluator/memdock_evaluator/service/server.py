"""The service as a process: the face, the replica behind it, and their end."""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from memdock.callers import Anybody, Callers, KeyFileCallers, keep_reloading
from memdock.errors import MemdockError, error
from memdock.http_server import HttpServer
from memdock.key_file import KeyFileError
from memdock.log import log_fault
from memdock.signals import told_to_end
from memdock.tls import Tls
from memdock.whole_file import write_whole
from memdock_evaluator.isolation.engine import Engine
from memdock_evaluator.run.settings import SettingsError
from memdock_evaluator.service.access import Access
from memdock_evaluator.service.app import Parts, http_app
from memdock_evaluator.service.book import Book
from memdock_evaluator.service.desk import Desk
from memdock_evaluator.service.documents import End
from memdock_evaluator.service.faults import ServiceConfigError
from memdock_evaluator.service.files import Files
from memdock_evaluator.service.links import Links
from memdock_evaluator.service.marks import Marks
from memdock_evaluator.service.metrics import Metrics
from memdock_evaluator.service.offer import Offer, check_judges
from memdock_evaluator.service.replica import Pace, Replica
from memdock_evaluator.service.systems import Systems
from memdock_evaluator.service.watch import Watch

READY_S = 3.0
"""The longest that the results address may take to answer."""
READY_HOLDS_S = 1.0
THREADS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """`results` is an address that fsspec knows; `keys`: `None` asks nobody for a key. `places`: runs at once here,
    `most_open`: runs of a tenant that wait or run.
    """

    results: str
    listen: str
    keys: Path | None = None
    offer: Offer = field(default_factory=Offer)
    gateway_key: str = field(default="", repr=False)
    places: int = 1
    most_open: int = 100
    pace: Pace = field(default_factory=Pace)
    tls: Tls | None = None


async def serve(settings: ServiceSettings, port_file: Path | None) -> None:
    """Serves until SIGTERM or SIGINT; runs that are carried out then are ended in order, and any replica goes on.

    `port_file` gets `{"http": port}` once calls are taken. Raises `ServiceConfigError`, `ResultsUnreachableError`, and
    `OSError` where the address cannot be bound.
    """
    ending = told_to_end()
    async with contextlib.AsyncExitStack() as ends:
        port = await _open(settings, ends)
        if port_file is not None:
            write_whole(port_file, json.dumps({"http": port}))
        structlog.get_logger().info("serving", http=port)
        await ending.wait()
        structlog.get_logger().info("draining")
    structlog.get_logger().info("stopped")


async def _open(settings: ServiceSettings, ends: contextlib.AsyncExitStack) -> int:
    """Everything from the marks to the port; `ends` closes it in the other order."""
    # Beats must find a thread although slow stores hold others.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="files"))
    marks = Marks(settings.results)
    links, book = Links(marks), Book(marks)
    with tempfile.TemporaryDirectory() as scratch:
        check_judges(settings.offer.models, Path(scratch))
    if settings.offer.docker:
        await asyncio.to_thread(_check_engine, settings.offer.docker)
    callers = _callers(settings.keys)
    await asyncio.to_thread(links.prepare)
    files = Files(marks, settings.results)
    desk = Desk(book, files, settings.offer, most_open=settings.most_open)
    watch = Watch(desk, look_s=min(1.0, settings.pace.look_s))
    metrics = Metrics(running=lambda: replica.running, watching=lambda: watch.watching)
    replica = Replica(
        book=book,
        offer=settings.offer,
        address=settings.results,
        places=settings.places,
        pace=settings.pace,
        ended=lambda end: _tell_end(metrics, end),
        took_over=metrics.run_taken_over,
    )
    readiness = _Readiness(links)
    parts = Parts(
        callers=callers,
        desk=desk,
        files=files,
        links=links,
        watch=watch,
        offer=settings.offer,
        systems=Systems(settings.offer.gateway, settings.gateway_key),
        metrics=metrics,
        wake=replica.wake,
        ready=readiness.ready,
    )
    server = HttpServer(
        Access(http_app(parts), metrics, loopback=settings.keys is None), settings.listen, tls=settings.tls
    )
    ends.push_async_callback(server.stop)
    if isinstance(callers, KeyFileCallers):
        _background(keep_reloading(callers), ends)
    _background(replica.work(), ends)
    ends.push_async_callback(replica.drain)
    ends.callback(watch.end)
    ends.callback(readiness.end)
    await server.start()
    return server.port


def _callers(keys: Path | None) -> Callers:
    if keys is None:
        return Anybody()
    try:
        return KeyFileCallers(keys)
    except KeyFileError as problem:
        raise ServiceConfigError(f"--keys {problem}") from None


def _check_engine(address: str) -> None:
    try:
        Engine.check(address)
    except SettingsError as problem:
        raise ServiceConfigError(str(problem)) from None


def _tell_end(metrics: Metrics, end: End) -> None:
    metrics.run_ended(end.state)


def _background(work: Coroutine[Any, Any, None], ends: contextlib.AsyncExitStack) -> None:
    task = asyncio.create_task(work)
    ends.callback(task.cancel)


class _Readiness:
    """Whether the results address answers; many who ask at once share one look."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._asked_s = float("-inf")
        self._looking: asyncio.Future[bool] | None = None
        self._draining = False

    def end(self) -> None:
        """From now on whoever shares out calls is to share them out to others."""
        self._draining = True

    async def ready(self) -> bool:
        """Raises DRAINING once the server ends."""
        if self._draining:
            raise error("DRAINING", "the server is stopping; another one, or this one later, will answer")
        now_s = time.monotonic()
        if self._looking is None or (self._looking.done() and now_s - self._asked_s >= READY_HOLDS_S):
            self._asked_s = now_s
            self._looking = asyncio.ensure_future(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> bool:
        try:
            async with asyncio.timeout(READY_S):
                return await asyncio.to_thread(self._links.still_there)
        except (TimeoutError, MemdockError) as fault:
            log_fault("not_ready", fault)
            return False
