"""The suite run inside a test: a system behind both faces, its mutants, and the verdicts by case."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from memdock.conformance.case import Case
from memdock.conformance.faces import open_face
from memdock.conformance.models import Models, serving
from memdock.conformance.run import Result, Verdict, run_cases
from memdock.conformance.target import Settings, Target
from memdock.engine import Ledgered
from memdock.ledger import Ledger
from memdock.service import Service
from memdock.sqlite_ledger import SqliteLedger
from memdock.transport import Endpoint
from support.faces import faces_of
from support.remembering import Remembering

QUICK = Settings(seed=7, settle_s=1.0, timeout_s=60.0)

MakeSystem = Callable[[str], Remembering]
"""From the model server's address."""
MakeLedger = Callable[[Path], Ledger]
Wrap = Callable[[Service, Remembering], Service]


def _as_it_is(service: Service, system: Remembering) -> Service:
    return service


@asynccontextmanager
async def target_of(
    folder: Path,
    make_system: MakeSystem = Remembering,
    *,
    make_ledger: MakeLedger = SqliteLedger,
    wrap: Wrap = _as_it_is,
    model_delay_s: float = 0.0,
) -> AsyncIterator[Target]:
    """A described target over both faces, with the scripted model server behind it."""
    async with serving(Models(delay_s=model_delay_s)) as models:
        system = make_system(models.url)
        engine = Ledgered(system, make_ledger(folder / "ledger.db"))
        await engine.start()
        try:
            service = wrap(engine, system)
            async with faces_of(service, limits=engine.limits, check_ready=engine.check_ready) as where:
                faces = tuple(open_face(Endpoint(url=url)) for url in where.urls)
                target = Target(faces=faces, urls=where.urls, models=models)
                await target.describe()
                yield target
                for face in faces:
                    await face.close()
        finally:
            await engine.drain(5.0)
            await engine.close()


async def verdicts(cases: Sequence[Case], target: Target, settings: Settings = QUICK) -> list[Result]:
    """What the cases have shown."""
    return await run_cases(cases, target, settings)


def failed(results: Sequence[Result]) -> dict[str, str]:
    """Why each failing case fails, by its id."""
    return {result.case.id: result.reason for result in results if result.verdict is Verdict.FAILED}
