"""What the service does for a caller, on plain values: the HTTP face only translates. Methods wait for files."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from memdock.check import SYSTEM
from memdock.keys import Key
from memdock_evaluator.answer.prompts import PromptError
from memdock_evaluator.cost.estimate import estimate, in_words
from memdock_evaluator.dataset import DatasetError
from memdock_evaluator.run.settings import RunSettings, SettingsError
from memdock_evaluator.service import plans, shapes
from memdock_evaluator.service.book import Book, Place
from memdock_evaluator.service.carrier import COMPLETED
from memdock_evaluator.service.documents import Asked, Plan, new_run_id, now
from memdock_evaluator.service.faults import PlanError, not_ready, queue_full, run_not_found, spaces_kept
from memdock_evaluator.service.files import Files
from memdock_evaluator.service.offer import Offer
from memdock_evaluator.service.replica import cancelled_while_queued

AT_ONCE = 16
MAX_REQUEST_ID = 128
RESUMABLE = ("incomplete", "failed", "cancelled")


class Desk:
    """Starts, shows and ends the runs of tenants. Raises the errors of the service."""

    def __init__(self, book: Book, files: Files, offer: Offer, *, most_open: int) -> None:
        """`most_open`: how many runs of a tenant may wait or run at once."""
        self._book, self._files, self._offer, self._most_open = book, files, offer, most_open

    def start(self, key: Key, text: str, request_id: str) -> shapes.Run:
        """A new run of a plan, or the one that the same request has made before."""
        plan = self._allowed(key, text)
        with self._settings(plan) as made:
            plans.check_money(made, self._offer)
            plans.check_run(made, self._offer)
        if not request_id.isprintable() or len(request_id) > MAX_REQUEST_ID:
            raise PlanError("Idempotency-Key", f"give at most {MAX_REQUEST_ID} printable characters")
        if request_id and (earlier := self._book.of_request(key.tenant, request_id, plan)):
            return self.run(key, earlier)
        if sum(not place.ended for place in self._book.places(key.tenant)) >= self._most_open:
            raise queue_full(self._most_open)
        asked = Asked(
            run_id=new_run_id(),
            tenant=key.tenant,
            key_id=key.key_id,
            created=now(),
            plan=plan,
            request_id=request_id,
        )
        return self.run(key, self._book.add(asked))

    def estimate(self, key: Key, text: str) -> shapes.Estimate:
        """What a run of the plan would ask and cost."""
        with self._settings(self._allowed(key, text)) as made:
            try:
                found = estimate(made)
            except (SettingsError, PromptError, DatasetError) as error:
                raise PlanError("data", self._offer.without_places(str(error))) from error
        if not found.questions:
            raise PlanError("data", "the data that is selected holds no question")
        return shapes.Estimate(
            questions=found.questions,
            dialogues=found.dialogues,
            calls=[
                shapes.Calls(
                    system=line.system,
                    purpose=line.purpose,
                    model=line.model,
                    calls=found.calls[line.system, line.purpose, line.model],
                    input_tokens=line.input_tokens,
                    output_tokens=line.output_tokens,
                    cost=line.money,
                )
                for line in found.cost.lines
            ],
            cost=found.cost.money,
            currency=found.cost.currency,
            unpriced=list(found.cost.unpriced),
            sentences=list(in_words(found)),
        )

    def runs(self, key: Key, *, state: str | None, size: int, after: str) -> shapes.Runs:
        """A page of the tenant's runs, the newest first; `after`: the last run of the page before."""
        found: list[shapes.Run] = []
        places = [place for place in reversed(self._book.places(key.tenant)) if not after or place.run_id < after]
        with ThreadPoolExecutor(AT_ONCE) as pool:  # a look at an object store takes tens of milliseconds
            for start in range(0, len(places), AT_ONCE):
                for run in pool.map(self._shown, places[start : start + AT_ONCE]):
                    if run is None or state not in (None, run.state):
                        continue
                    if len(found) == size:
                        return shapes.Runs(runs=found, next_page_token=found[-1].run_id)
                    found.append(run)
        return shapes.Runs(runs=found, next_page_token="")

    def run(self, key: Key, run_id: str) -> shapes.Run:
        """One run."""
        run = self._shown(self.place(key, run_id))
        if run is None:
            raise run_not_found(run_id)
        return run

    def place(self, key: Key, run_id: str) -> Place:
        """Where a run of the tenant is."""
        place = self._book.place(key.tenant, run_id)
        if place is None:
            raise run_not_found(run_id)
        return place

    def resume(self, key: Key, run_id: str, budget: float | None) -> shapes.Run:
        """Asks for another attempt, which goes on where the last one ended."""
        place = self.place(key, run_id)
        run = self.run(key, run_id)
        if run.state not in RESUMABLE:
            raise not_ready(f"the run is {run.state}: only one that has ended before it was complete is resumed")
        if budget is not None and self._offer.ceiling is not None and budget > self._offer.ceiling:
            said = f"{budget:g} is more than this server allows a run, {self._offer.ceiling:g}"
            raise PlanError("budget", said)
        self._book.ask(key.tenant, run_id, place.attempt + 1, budget)
        return self.run(key, run_id)

    def cancel(self, key: Key, run_id: str) -> shapes.Run:
        """Ends a run that waits or runs; one that has ended stays as it is."""
        place = self.place(key, run_id)
        if not place.ended:
            self._book.cancel(place)
            # Looked at again: who takes the run from now on finds the mark before it begins.
            place = self.place(key, run_id)
            if not place.taken:
                self._book.end(place, cancelled_while_queued())
        return self.run(key, run_id)

    def spaces(self, key: Key, run_id: str) -> tuple[RunSettings, str] | None:
        """What a run that is to be removed may have left at memory systems: its settings, and its manifest's id."""
        place = self._removable(key, run_id)
        asked, end = self._book.asked(place), self._book.ending(place)
        manifest = self._files.manifest(place)
        if asked is None or manifest is None or "system" not in asked.plan or (end and end.state == COMPLETED):
            return None
        try:
            with self._settings(asked.plan) as made:
                return made, manifest.run_id
        except PlanError as error:
            raise spaces_kept() from error

    def remove(self, key: Key, run_id: str) -> None:
        """Takes away a run that has ended, with its results."""
        self._book.remove(self._removable(key, run_id))

    def _removable(self, key: Key, run_id: str) -> Place:
        place = self.place(key, run_id)
        if not place.ended:
            raise not_ready("the run has not ended: cancel it first")
        return place

    def _allowed(self, key: Key, text: str) -> Plan:
        plan = plans.read_plan(text)
        systems = plan.get("system", ())
        for name in (systems,) if isinstance(systems, str) else systems:
            if not SYSTEM.fullmatch(name):
                raise PlanError("system", f"{name!r} is no system's name")
            key.allow(call="StartRuns", system=name)
        return plan

    @contextmanager
    def _settings(self, plan: Plan) -> Iterator[RunSettings]:
        with tempfile.TemporaryDirectory(prefix="memdock-plan-") as scratch:
            yield plans.settings(plan, self._offer, Path(scratch))

    def _shown(self, place: Place) -> shapes.Run | None:
        asked, attempt = self._book.asked(place), self._book.attempt(place)
        if asked is None or attempt is None:
            return None
        end, beat = self._book.ending(place), self._book.newest_beat(place)
        state: shapes.State = "queued"
        if end is not None:
            state = next(one for one in shapes.STATES if one == end.state)
        elif place.cancelled:
            state = "cancelling"
        elif place.taken and not (place.has_beat and (self._book.own_beat(place) or beat).released):
            state = "running"
        return shapes.Run(
            run_id=place.run_id,
            state=state,
            created=asked.created,
            ended=end.at if end else None,
            attempt=place.attempt,
            plan={name: list(words) if isinstance(words, tuple) else words for name, words in asked.plan.items()},
            progress=[shapes.Count(work=work, done=done, total=total) for work, (done, total) in beat.done.items()],
            messages=[shapes.Message(number=one.number, at=one.at, text=one.text) for one in beat.said],
            exit_code=end.exit_code if end else None,
            sentences=list(end.sentences) if end else [],
            budget=attempt.budget,
            cost=end.cost if end else None,
            currency=end.currency if end else "",
        )
