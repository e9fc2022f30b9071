"""A replica at work: it takes the runs that wait, and those whose replica is gone, as many at once as it has places."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from memdock.log import log_fault
from memdock_evaluator.service.book import Book, Place
from memdock_evaluator.service.carrier import CANCELLED, INCOMPLETE, Carrier
from memdock_evaluator.service.documents import Beat, End, new_token, now
from memdock_evaluator.service.faults import ResultsUnreachableError
from memdock_evaluator.service.offer import Offer

MAX_TAKEN = 20
"""How often an attempt is taken before it is told as one that ends its replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds: between looks for work, between beats, and until a replica without a beat is gone."""

    look_s: float = 2.0
    beat_s: float = 2.0
    lease_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What was last seen of an attempt that another replica holds, and since when it has stood still."""

    taken: int
    count: int
    since_s: float


class Replica:
    """Carries out runs until `drain`; tells `ended` of each end, `took_over` of each run of a replica that is gone."""

    def __init__(
        self,
        *,
        book: Book,
        offer: Offer,
        address: str,
        places: int,
        pace: Pace,
        ended: Callable[[End], None],
        took_over: Callable[[], None],
    ) -> None:
        self._book, self._offer, self._address = book, offer, address
        self._places, self._pace = places, pace
        self._ended, self._took_over = ended, took_over
        self._work: dict[str, asyncio.Task[None]] = {}
        self._carriers: dict[str, Carrier] = {}
        self._seen: dict[str, _Seen] = {}
        self._woken = asyncio.Event()
        self._draining = False
        self._log = structlog.get_logger("memdock.evaluation")

    @property
    def running(self) -> int:
        """How many runs are carried out here."""
        return len(self._work)

    def wake(self) -> None:
        """There is a run to take, or a place."""
        self._woken.set()

    async def work(self) -> None:
        """Looks for runs until it is cancelled."""
        while True:
            self._woken.clear()
            try:
                await self._look()
            except ResultsUnreachableError:
                self._log.warning("no_look")
            except Exception as fault:  # noqa: BLE001  one odd mark must not be the last that is looked at
                log_fault("look_failed", fault)
            try:
                async with asyncio.timeout(self._pace.look_s):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def drain(self) -> None:
        """Takes no run any more, ends those that are carried out in order, and gives them back."""
        self._draining = True
        for carrier in self._carriers.values():
            carrier.drain()
        await asyncio.gather(*self._work.values(), return_exceptions=True)

    async def _look(self) -> None:
        waiting: list[Place] = []
        for tenant in await asyncio.to_thread(self._book.tenants):
            places = await asyncio.to_thread(self._book.places, tenant)
            waiting += [place for place in places if not place.ended and place.run_id not in self._work]
        open_ids = {place.run_id for place in waiting}
        self._seen = {run_id: seen for run_id, seen in self._seen.items() if run_id in open_ids}
        for place in sorted(waiting, key=lambda place: place.run_id):
            if self._draining or len(self._work) >= self._places:
                # Those of others are looked at all the same: a stand-still is counted from when it was first seen.
                await self._is_free(place)
            elif await self._is_free(place):
                await self._take(place)

    async def _is_free(self, place: Place) -> bool:
        """Whether nobody carries the attempt out."""
        if not place.taken:
            return True
        beat = await asyncio.to_thread(self._book.own_beat, place) or Beat()
        if beat.released:
            return True
        seen = self._seen.get(place.run_id)
        if seen is None or (seen.taken, seen.count) != (place.taken, beat.count):
            seen = _Seen(taken=place.taken, count=beat.count, since_s=time.monotonic())
            self._seen[place.run_id] = seen
        return time.monotonic() - seen.since_s >= self._pace.lease_s

    async def _take(self, place: Place) -> None:
        if place.taken >= MAX_TAKEN:
            said = f"{MAX_TAKEN} times the run was begun and its replica ended, as it is for want of memory; resume it"
            end = End(state=INCOMPLETE, at=now(), token=new_token(), sentences=(said,))
            await asyncio.to_thread(self._book.end, place, end)
            return
        if not await asyncio.to_thread(self._book.take, place):
            return
        self._seen.pop(place.run_id, None)
        if place.taken:
            self._took_over()
        self._log.info("run_taken", run=place.run_id, tenant=place.tenant, number=place.taken + 1)
        task = asyncio.create_task(self._carry(place))
        self._work[place.run_id] = task
        task.add_done_callback(lambda _: self._done(place.run_id))

    def _done(self, run_id: str) -> None:
        self._work.pop(run_id, None)
        self._carriers.pop(run_id, None)
        self._woken.set()

    async def _carry(self, place: Place) -> None:
        scratch = Path(tempfile.mkdtemp(prefix="memdock-run-"))
        try:
            carrier = self._carriers[place.run_id] = Carrier(
                book=self._book,
                offer=self._offer,
                address=self._address,
                place=place,
                number=place.taken + 1,
                scratch=scratch,
                beat_s=self._pace.beat_s,
            )
            if self._draining:
                carrier.drain()
            end = await carrier.run()
            if end is not None:
                self._ended(end)
        except ResultsUnreachableError:
            self._log.warning("run_left", run=place.run_id)  # without beats, it is somebody's after the lease
        except Exception as fault:  # noqa: BLE001  a bug in carrying one run out must not end the others
            log_fault("run_failed", fault, run=place.run_id)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def cancelled_while_queued() -> End:
    """The end of a run that nobody has begun."""
    return End(state=CANCELLED, at=now(), token=new_token(), sentences=("cancelled before it began",))
