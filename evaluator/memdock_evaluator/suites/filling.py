"""A dialogue into a space of the suite's own, as `run` stores it."""

from memdock_evaluator.dataset import Dialogue
from memdock_evaluator.faults import Fault
from memdock_evaluator.results.parts import Unit
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run.ingest import Ingest
from memdock_evaluator.run.progress import Progress
from memdock_evaluator.run.requests import groups
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.suites.system import ErasableSystem
from memdock_evaluator.words import counted


async def fill(
    system: ErasableSystem, space_id: str, dialogue: Dialogue, settings: RunSettings, progress: Progress
) -> None:
    """Empties the space and stores the dialogue; says which turns failed. Raises `Fault` or `RunStoppedError`."""
    await system.reset(space_id)
    ingest = Ingest(
        system=system,
        unit=Unit(system=system.name, language=dialogue.language, dialogue_id=dialogue.dialogue_id),
        space_id=space_id,
        flush_timeout_s=settings.flush_timeout_s,
        progress=progress,
    )
    await ingest.add(groups(dialogue, settings.ingest_unit))
    if failed := (await ingest.finish()).failed_turns:
        where = f"{system.name}: dialogue {dialogue.dialogue_id} ({dialogue.language})"
        why = f"the first with {failed[0].reason}: {failed[0].message}"
        progress.say(f"{where}: {counted(len(failed), 'turn')} not stored, {why}")


async def settle(system: ErasableSystem, space_id: str, settings: RunSettings) -> None:
    """The barrier; raises `Fault` where turns are still pending when its time is up."""
    flushed = (await system.flush(space_id, timeout_s=settings.flush_timeout_s)).result
    if not flushed.done:
        detail = f"{counted(flushed.pending, 'turn')} still pending after {settings.flush_timeout_s:g} s"
        raise Fault(Outcome.INFRASTRUCTURE_ERROR, "DEADLINE_EXCEEDED", detail)
