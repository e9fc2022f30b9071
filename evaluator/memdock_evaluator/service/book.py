"""Runs as marks. Who asked for a run, who carries it out and how it ended are files that are created once:

RUN.plan.json               the plan, and whose it is
RUN.001.asked.json          it is to be carried out; resuming asks for a second attempt
RUN.001.taken-001.json      a replica has taken the attempt; a replica that takes over makes the next number
RUN.001.beat-001.json       how far it is; the one file that is replaced, by its one writer
RUN.001.cancel.json         somebody wants it to end
RUN.001.end.json            it has ended

No clock is compared: a replica is gone when its beats have stood still for the time of a lease, as seen by whoever
looks. A replica that lost an attempt finds the next number and writes nothing more of it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import Lock
from typing import Any

import orjson

from memdock_evaluator.service.documents import (
    Asked,
    Attempt,
    Beat,
    DocumentT,
    End,
    Plan,
    document_bytes,
    new_token,
    now,
    read_document,
)
from memdock_evaluator.service.faults import id_conflict
from memdock_evaluator.service.marks import Marks

MARKS, RUNS = "service", "runs"
"""The folders at the results address: marks, and results."""

RUN_ID = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}")
_NAME = re.compile(rf"({RUN_ID.pattern})\.(?:plan|(\d{{3}})\.(asked|cancel|end|taken-(\d{{3}})|beat-(\d{{3}})))\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the newest attempt of a run is, by the names of its marks. `taken`: how often it was taken."""

    tenant: str
    run_id: str
    attempt: int
    taken: int = 0
    has_beat: bool = False
    cancelled: bool = False
    ended: bool = False

    def mark(self, what: str) -> str:
        """The name of a mark of the attempt, right inside the tenant's folder."""
        return f"{self.run_id}.{self.attempt:03}.{what}.json"


class Book:
    """Reads and writes the marks of runs. Methods wait for the store, and raise `ResultsUnreachableError`."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._kept: dict[str, bytes] = {}
        self._lock = Lock()

    def tenants(self) -> list[str]:
        """The tenants that have runs."""
        return self._marks.folders(MARKS)

    def places(self, tenant: str) -> list[Place]:
        """All runs of a tenant, the oldest first."""
        return list(_places(tenant, self._marks.names(_folder(tenant))))

    def place(self, tenant: str, run_id: str) -> Place | None:
        """One run; `None` where the tenant has none of that id."""
        if not RUN_ID.fullmatch(run_id):
            return None
        return next((place for place in self.places(tenant) if place.run_id == run_id), None)

    def of_request(self, tenant: str, request_id: str, plan: Plan) -> str | None:
        """The run that a request has made, if it has; raises 409 where it had another plan."""
        run_id = self._requested(tenant, request_id, plan)
        return run_id if run_id is not None and self.place(tenant, run_id) else None

    def add(self, asked: Asked) -> str:
        """Keeps a new run; its id, or that of the run that the same request has made. Raises 409 for another plan."""
        if asked.request_id:
            request = orjson.dumps({"run_id": asked.run_id, "plan": _plain(asked.plan)})
            if not self._marks.create(_request(asked.tenant, asked.request_id), request):
                run_id = self._requested(asked.tenant, asked.request_id, asked.plan)
                asked = replace(asked, run_id=run_id or asked.run_id)
        # Again where an earlier request got no further than this.
        self._marks.create(f"{_folder(asked.tenant)}/{asked.run_id}.plan.json", document_bytes(asked))
        self.ask(asked.tenant, asked.run_id, 1, None)
        return asked.run_id

    def ask(self, tenant: str, run_id: str, attempt: int, budget: float | None) -> bool:
        """Asks for an attempt; whether nobody had."""
        place = Place(tenant=tenant, run_id=run_id, attempt=attempt)
        return self._create(place, "asked", Attempt(at=now(), token=new_token(), budget=budget))

    def take(self, place: Place) -> bool:
        """Takes an attempt, or takes it over; whether nobody was faster."""
        return self._create(place, f"taken-{place.taken + 1:03}", {"token": new_token(), "at": now()})

    def was_taken_over(self, place: Place, number: int) -> bool:
        """Whether a replica has taken the attempt after the one that took it as `number`."""
        return self._read(place, f"taken-{number + 1:03}") is not None

    def beat(self, place: Place, number: int, beat: Beat) -> None:
        """Writes how far the attempt is."""
        self._marks.write(f"{_folder(place.tenant)}/{place.mark(f'beat-{number:03}')}", document_bytes(beat))

    def cancel(self, place: Place) -> None:
        """Wants the attempt to end."""
        self._create(place, "cancel", {"token": new_token(), "at": now()})

    def is_cancelled(self, place: Place) -> bool:
        """Whether somebody wants the attempt to end."""
        return self._read(place, "cancel") is not None

    def end(self, place: Place, end: End) -> bool:
        """The attempt has ended; whether nobody had told so."""
        return self._create(place, "end", end)

    def asked(self, place: Place) -> Asked | None:
        """What was asked for; `None` where the run was removed meanwhile."""
        return self._once(place, f"{place.run_id}.plan.json", Asked)

    def attempt(self, place: Place) -> Attempt | None:
        """What the newest attempt was asked with."""
        return self._once(place, place.mark("asked"), Attempt)

    def ending(self, place: Place) -> End | None:
        """How the newest attempt ended; `None` while it has not."""
        return self._once(place, place.mark("end"), End) if place.ended else None

    def newest_beat(self, place: Place) -> Beat:
        """How far the attempt is, as its last holder, or the one before, told."""
        for number in range(place.taken if place.has_beat else 0, 0, -1):
            if place.ended:
                beat = self._once(place, place.mark(f"beat-{number:03}"), Beat)
            else:
                content = self._read(place, f"beat-{number:03}")
                beat = None if content is None else read_document(Beat, content)
            if beat is not None:
                return beat
        return Beat()

    def own_beat(self, place: Place) -> Beat | None:
        """What the last one who took the attempt told; `None`: nothing yet."""
        content = self._read(place, f"beat-{place.taken:03}") if place.taken else None
        return None if content is None else read_document(Beat, content)

    def remove(self, place: Place) -> None:
        """Takes away all of a run: its results first, so that what is left can be removed again."""
        asked = self.asked(place)
        self._marks.delete(results_of(place.tenant, place.run_id))
        folder = _folder(place.tenant)
        if asked is not None and asked.request_id:
            self._marks.delete(_request(place.tenant, asked.request_id))
        # Ends after all other marks of attempts: a run that seemed asked for and not ended would be taken again.
        for name in sorted(
            self._marks.names(folder), key=lambda name: (name.endswith((".end.json", ".plan.json")), name)
        ):
            if name.startswith(f"{place.run_id}."):
                with self._lock:
                    self._kept.pop(f"{folder}/{name}", None)
                self._marks.delete(f"{folder}/{name}")

    def _requested(self, tenant: str, request_id: str, plan: Plan) -> str | None:
        content = self._marks.read(_request(tenant, request_id))
        if content is None:
            return None
        found = orjson.loads(content)
        if found["plan"] != _plain(plan):
            raise id_conflict()
        return str(found["run_id"])

    def _create(self, place: Place, what: str, document: object) -> bool:
        return self._marks.create(f"{_folder(place.tenant)}/{place.mark(what)}", document_bytes(document))

    def _read(self, place: Place, what: str) -> bytes | None:
        return self._marks.read(f"{_folder(place.tenant)}/{place.mark(what)}")

    def _once(self, place: Place, name: str, kind: type[DocumentT]) -> DocumentT | None:
        """A document that never changes, read once by this process."""
        path = f"{_folder(place.tenant)}/{name}"
        if (content := self._kept.get(path) or self._marks.read(path)) is None:
            return None
        with self._lock:
            self._kept[path] = content
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return read_document(kind, content)


def results_of(tenant: str, run_id: str) -> str:
    """The folder of a run's results, relative to the results address."""
    return f"{RUNS}/{tenant}/{run_id}"


def _folder(tenant: str) -> str:
    return f"{MARKS}/{tenant}"  # a tenant's name has the form of a space_id, and is a file's name as it stands


def _request(tenant: str, request_id: str) -> str:
    return f"{_folder(tenant)}/request-{sha256(request_id.encode()).hexdigest()[:32]}.json"


def _places(tenant: str, names: Iterable[str]) -> Iterable[Place]:
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for match in filter(None, map(_NAME.fullmatch, names)):
        run_id, attempt, what, taken, _ = match.groups()
        attempts = found.setdefault(run_id, {})
        if attempt is None:
            continue
        facts = attempts.setdefault(int(attempt), {})
        if taken:
            facts["taken"] = max(facts.get("taken", 0), int(taken))
        elif what == "cancel":
            facts["cancelled"] = True
        elif what == "end":
            facts["ended"] = True
        elif what != "asked":
            facts["has_beat"] = True
    for run_id, attempts in sorted(found.items()):
        if attempts:
            newest = max(attempts)
            yield Place(tenant=tenant, run_id=run_id, attempt=newest, **attempts[newest])


def _plain(plan: Plan) -> dict[str, object]:
    return {name: list(words) if isinstance(words, tuple) else words for name, words in sorted(plan.items())}


_KEPT = 4096
