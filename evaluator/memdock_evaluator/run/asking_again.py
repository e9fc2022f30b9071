"""Questions that have their outcome, a failure, asked again on demand, and what came of that.

Asking until the outcome is right would be fishing: the manifest keeps each demand and what it changed, the summary
says so, and earlier attempts stay as parts.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from memdock_evaluator.results.finalise import MANIFEST
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import AskedAgain, Manifest
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.records import ANSWER, JUDGE, RETRIEVE, ROWS, Blame
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.run.beginning import now
from memdock_evaluator.run.settings import SettingsError
from memdock_evaluator.run.settling import Key, known, unanswered, unsettle


def ask_again_on_demand(
    folder: Folder, manifest: Manifest, units: Collection[Unit], outcomes: Sequence[str]
) -> Manifest:
    """Unsettles the questions with one of these outcomes, and notes the demand in the folder's manifest first.

    A demand that did not come to its end goes on: what it has unsettled is not unsettled again. Raises `SettingsError`
    where no question has such an outcome.
    """
    wanted = tuple(sorted(outcomes))
    last = manifest.again[-1] if manifest.again else None
    if last is None or last.finished is not None or last.outcomes != wanted:
        asked = sum(len(_failed(Parts(folder, unit), wanted)) for unit in units)
        if not asked:
            raise SettingsError(f"--again: no question of {folder.address} has the outcome {' or '.join(wanted)}")
        demand = AskedAgain(outcomes=wanted, begun=now(), asked=asked)
        manifest = replace(manifest, again=(*manifest.again, demand), finished=None)
        folder.write(MANIFEST, manifest.to_json())
    for unit in units:
        _unsettle(Parts(folder, unit), wanted, _mark(len(manifest.again)))
    return manifest


def ended(manifest: Manifest, folder: Folder, units: Iterable[Unit]) -> Manifest:
    """The manifest of a run that is complete, with what each demand that had not ended has changed."""
    if all(demand.finished is not None for demand in manifest.again):
        return manifest
    rows = [_by_key(Parts(folder, unit).read(ROWS)) for unit in units]
    return replace(
        manifest,
        again=tuple(
            demand if demand.finished is not None else _ended(demand, _mark(number), rows)
            for number, demand in enumerate(manifest.again, start=1)
        ),
    )


def _ended(demand: AskedAgain, mark: Blame, units: Iterable[dict[Key, list[Row]]]) -> AskedAgain:
    changed = right = 0
    for rows in units:
        for attempts in rows.values():
            marked = [number for number, row in enumerate(attempts) if _is_marked(row, mark)]
            if marked:
                before, after = attempts[marked[0] - 1], attempts[-1]
                changed += (before.outcome, before.verdict) != (after.outcome, after.verdict)
                right += bool(after.correct) and not before.correct
    return replace(demand, finished=now(), changed=changed, right=right)


def _mark(number: int) -> Blame:
    """That of the manifest's demand of this number: it tells what a killed run has unsettled already."""
    return Blame(
        outcome=Outcome.INFRASTRUCTURE_ERROR, reason="ASKED_AGAIN", detail=f"asked again on demand, time {number}"
    )


def _is_marked(row: Row, mark: Blame) -> bool:
    return (row.reason, row.detail) == (mark.reason, mark.detail)


def _failed(parts: Parts, outcomes: Collection[str]) -> set[Key]:
    """Of the unit's rows: where the system, the answerer or the judge failed in one of these ways."""
    rows = {(row.question_id, row.repeat) for row in parts.newest(ROWS) if row.outcome in outcomes}
    judged = known(parts, JUDGE)
    return rows | {key for key, record in judged.items() if record.blame and record.blame.outcome in outcomes}


def _unsettle(parts: Parts, outcomes: Collection[str], mark: Blame) -> None:
    """The rows first and the memories last, so that a kill in between leaves nothing that looks done."""
    marked = {key for key, rows in _by_key(parts.read(ROWS)).items() if any(_is_marked(row, mark) for row in rows)}
    if failed := _failed(parts, outcomes) - marked:
        rows = parts.newest(ROWS)
        parts.write(ROWS, [unanswered(row, mark) if _key(row) in failed else row for row in rows])
    unsettle(parts, JUDGE, mark, outcomes)
    unsettle(parts, ANSWER, mark, outcomes)
    unsettle(parts, RETRIEVE, mark, outcomes)


def _by_key(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(_key(row), []).append(row)
    return found


def _key(row: Row) -> Key:
    return row.question_id, row.repeat
