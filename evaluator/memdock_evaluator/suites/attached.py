"""Results of the suites beside a run: taken into its folder, and read from there by every report.

`suites/NAME-ID.json` of a run's folder holds the manifest and the summary of one suite, so that a report made later, or
elsewhere, has them too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson
from pydantic import TypeAdapter, ValidationError

from memdock_evaluator.forgetting.summary import Summary as Forgetting
from memdock_evaluator.leaks.summary import Summary as Leaks
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.plan import Plan, SystemFacts
from memdock_evaluator.suites.folder import MANIFEST, SCHEMA_VERSION, SUMMARY, SuiteManifest, to_json
from memdock_evaluator.words.sentence import said

FORGETTING, LEAKS = "forgetting", "leaks"
SUITES = "suites"
"""The folder inside a run's."""

Differs: TypeAlias = Mapping[str, tuple[str, ...]]
"""System -> what was not as in the run; empty: nothing that the manifests tell."""


class AttachError(ValueError):
    """A folder that holds no finished suite of this run's systems; the message names it and says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingResult:
    """A suite on forgetting; `differs` names its systems that the run has too."""

    manifest: SuiteManifest
    summary: Forgetting
    differs: Differs


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaksResult:
    """A suite on leaks, in the same way."""

    manifest: SuiteManifest
    summary: Leaks
    differs: Differs


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """All suites of a run, the newest first. Of a system in several the newest counts, and `differs` leaves out the
    others.
    """

    forgetting: tuple[ForgettingResult, ...] = ()
    leaks: tuple[LeaksResult, ...] = ()


def attach(run: Folder, plan: Plan, address: str) -> None:
    """Takes the results of a suite's folder into the run's. Raises `AttachError` or `FolderError`."""
    suite = Folder(address)
    contents = {name: suite.read(name) for name in (MANIFEST, SUMMARY)}
    if missing := [name for name, content in contents.items() if content is None]:
        raise AttachError(f"{address}/{missing[0]} is not there: name the folder of a suite that has ended")
    found = _read(contents[MANIFEST] or b"", contents[SUMMARY] or b"", address)
    if found.manifest.finished is None:
        raise AttachError(f"{address}: the suite has not ended: give its command again, which goes on")
    if not _differs(found.manifest, plan):
        its = ", ".join(system.name for system in found.manifest.plan.systems)
        raise AttachError(f"{address} is of other systems ({its}): none of them is in this run")
    whole = {"manifest": orjson.loads(contents[MANIFEST] or b""), "summary": orjson.loads(contents[SUMMARY] or b"")}
    run.write(f"{SUITES}/{found.manifest.suite}-{found.manifest.run_id}.json", to_json(whole))


def attached(run: Folder, plan: Plan) -> Attached:
    """The suites in a run's folder. Raises `AttachError` for a file that is none of them."""
    results = sorted(_in(run), key=lambda each: each.manifest.finished or each.manifest.started, reverse=True)
    told: set[tuple[str, str]] = set()
    forgetting: list[ForgettingResult] = []
    leaks: list[LeaksResult] = []
    for each in results:
        name = each.manifest.suite
        differs = {
            system: fields for system, fields in _differs(each.manifest, plan).items() if (name, system) not in told
        }
        told |= {(name, system) for system in differs}
        if isinstance(each, ForgettingResult):
            forgetting.append(ForgettingResult(manifest=each.manifest, summary=each.summary, differs=differs))
        else:
            leaks.append(LeaksResult(manifest=each.manifest, summary=each.summary, differs=differs))
    return Attached(forgetting=tuple(forgetting), leaks=tuple(leaks))


def _in(run: Folder) -> Iterator[ForgettingResult | LeaksResult]:
    for name in run.names(SUITES):
        place = f"{run.address}/{SUITES}/{name}"
        try:
            whole: dict[str, Any] = orjson.loads(run.read(f"{SUITES}/{name}") or b"")
            manifest, summary = orjson.dumps(whole["manifest"]), orjson.dumps(whole["summary"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise AttachError(f"{place} is no result of a suite: delete it, and give its folder by --with") from error
        yield _read(manifest, summary, place)


def _read(manifest: bytes, summary: bytes, place: str) -> ForgettingResult | LeaksResult:
    try:
        told = _MANIFEST.validate_json(manifest, extra="forbid")
        if told.schema_version == SCHEMA_VERSION and told.suite == FORGETTING:
            return ForgettingResult(manifest=told, summary=_FORGETTING.validate_json(summary), differs={})
        if told.schema_version == SCHEMA_VERSION and told.suite == LEAKS:
            return LeaksResult(manifest=told, summary=_LEAKS.validate_json(summary), differs={})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        if where == "suite":
            which = "it names no suite, so give a folder of `memdock-eval forgetting` or `memdock-eval leaks`"
            raise AttachError(f"{place} is no result of a suite: {which}") from error
        raise AttachError(f"{place} is no result of a suite of this version: {where}: {first['msg']}") from error
    raise AttachError(f"{place} is of the suite {told.suite!r} by another version: run it again")


def _differs(manifest: SuiteManifest, plan: Plan) -> Differs:
    """By system of both."""
    of_run, of_all = plan.contestants, tuple(_of_data(manifest, plan))
    return {
        system.name: (*_of_system(of_run[system.name], system, manifest.suite), *of_all)
        for system in manifest.plan.systems
        if system.name in of_run
    }


def _of_system(asked: Sequence[SystemFacts], of_suite: SystemFacts, suite: str) -> Iterator[str]:
    """`asked`: the contestants that are this memory system. The suite on leaks has no k that counts."""
    of_run = asked[0]
    if of_run.config_digest != of_suite.config_digest:
        yield said("configuration")
    if (of_run.adapter, of_run.framework) != (of_suite.adapter, of_suite.framework):
        yield said("version")
    if of_run.models != of_suite.models:
        yield said("models")
    if of_run.ingest_unit != of_suite.ingest_unit:
        yield said("ingest unit")
    if suite == FORGETTING and of_suite.k not in [each.k for each in asked]:
        yield "k"


def _of_data(manifest: SuiteManifest, plan: Plan) -> Iterator[str]:
    """The suite on leaks has data of its own."""
    of_suite, of_run = ({file.sha256 for file in each.data.files} for each in (manifest.plan, plan))
    if manifest.suite == FORGETTING and of_suite - of_run:
        yield said("data")


_MANIFEST = TypeAdapter(SuiteManifest)
_FORGETTING = TypeAdapter(Forgetting)
_LEAKS = TypeAdapter(Leaks)
