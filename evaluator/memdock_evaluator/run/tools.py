"""What a run works with, opened and looked at before anything is asked: systems, answerer, judge, plan."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version

from memdock.client import AsyncClient, connect_async
from memdock.errors import MemdockError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from memdock.types import Feature, Support
from memdock_evaluator.answer.answerer import Answerer
from memdock_evaluator.answer.endpoint import ModelEndpoint
from memdock_evaluator.answer.judge import Judge
from memdock_evaluator.answer.offline import RefusingAnswerer
from memdock_evaluator.answer.opening import open_answerer, open_judge, refusals
from memdock_evaluator.answer.providers import Providers
from memdock_evaluator.answer.reply_cache import CacheError, ReplyCache
from memdock_evaluator.baselines import BASELINES, Baseline
from memdock_evaluator.cost.budget import Budget
from memdock_evaluator.faults import RunStoppedError
from memdock_evaluator.judging.configured import check_served
from memdock_evaluator.judging.panel import Panel, open_members
from memdock_evaluator.results.manifest import Compared
from memdock_evaluator.results.plan import DataFacts, Plan, SystemFacts
from memdock_evaluator.results.records import ANSWER, INGEST
from memdock_evaluator.run.contestants import announced, contestants
from memdock_evaluator.run.memory_system import MemorySystem
from memdock_evaluator.run.paper_profile import differences_from_paper
from memdock_evaluator.run.recorded import RecordedAnswerer, RecordedRun
from memdock_evaluator.run.selection import Selection, Survey
from memdock_evaluator.run.settings import RunSettings, SettingsError
from memdock_evaluator.run.tracks import check_settings, check_tracks
from memdock_evaluator.run.trial import try_answerer, try_judge
from memdock_evaluator.waiting import Say


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """`systems` and `baselines` by the name that stands in the rows. `refusing` answers where no model is asked."""

    systems: Mapping[str, MemorySystem]
    baselines: Mapping[str, Baseline]
    answerer: Answerer
    refusing: Answerer
    judge: Judge
    providers: Providers
    recorded: RecordedRun | None = None
    """The run that memories are taken from; there are no `systems` then."""

    def bill_to(self, run_id: str, paid: set[str]) -> None:
        """From now on replies are paid for by this run, which its parts say has `paid` for those of these keys."""
        self.providers.run_id, self.providers.paid = run_id, paid

    def keep_to(self, budget: Budget) -> None:
        """From now on, models and memory systems are asked within the budget."""
        self.providers.budget = budget
        for system in self.systems.values():
            system.budget = budget


async def open_tools(
    settings: RunSettings,
    languages: tuple[str, ...],
    stack: AsyncExitStack,
    say: Say,
    recorded: RecordedRun | None = None,
) -> Tools:
    """Opens everything; `stack` closes it. `say` is told where an answer is long in coming.

    Raises `SettingsError` or `PromptError` for what cannot be meant, `RunStoppedError` for a system that is not there.
    """
    if recorded is None:
        _check(settings)
    providers = open_providers(settings.cache, stack, say)
    answerer: Answerer
    if recorded is not None and recorded.reuse.through == ANSWER.name:
        answerer = RecordedAnswerer(recorded.plan.answerer)
    else:
        answerer = open_answerer(settings.answerer, languages, seed=settings.seed, providers=providers)
    stack.push_async_callback(answerer.close)
    judge = _judge(settings, languages, providers)
    stack.push_async_callback(judge.close)
    return Tools(
        systems={name: await _connect(name, settings, stack, say) for name in settings.systems},
        baselines={BASELINES[name].system: BASELINES[name] for name in settings.baselines},
        answerer=answerer,
        refusing=RefusingAnswerer(refusals(languages)),
        judge=judge,
        providers=providers,
        recorded=recorded,
    )


def open_providers(cache: str, stack: AsyncExitStack, say: Say) -> Providers:
    """What the models of a run share; `cache`: the address of a cache of replies, "" for none.

    Raises `SettingsError`.
    """
    if not cache:
        return Providers(say=say)
    try:
        replies = ReplyCache(cache)
    except CacheError as error:
        raise SettingsError(f"--cache: {error}") from error
    stack.callback(replies.close)
    return Providers(say=say, cache=replies)


def _judges(
    settings: RunSettings, languages: tuple[str, ...], tools: Tools
) -> Iterator[tuple[Judge, ModelEndpoint, str]]:
    """Every judge that is a model, with its endpoint and the first language that it serves."""
    if isinstance(tools.judge, Panel):
        endpoints = {judge.name: judge.settings.endpoint for judge in settings.judges}
        found = [(each.judge, endpoints[each.name], each.languages[0]) for each in tools.judge.members]
    else:
        found = [(tools.judge, settings.judge.endpoint, languages[0])]
    for judge, endpoint, language in found:
        if endpoint is not None:
            yield judge, endpoint, language


def _judge(settings: RunSettings, languages: tuple[str, ...], providers: Providers) -> Judge:
    if not settings.judges:
        return open_judge(settings.judge, languages, seed=settings.seed, providers=providers)
    check_served(settings.judges, languages)
    return Panel(open_members(settings.judges, languages, seed=settings.seed, providers=providers), languages)


async def try_models(settings: RunSettings, languages: tuple[str, ...], tools: Tools) -> None:
    """Asks each model endpoint a small question; raises `RunStoppedError` for one that would fail the run."""
    if settings.answerer.endpoint is not None:
        await try_answerer(tools.answerer, settings.answerer.endpoint, languages[0])
    for judge, endpoint, language in _judges(settings, languages, tools):
        await try_judge(judge, endpoint, language)


def plan_of(settings: RunSettings, data: DataFacts, tools: Tools) -> Plan:
    """All that decides the figures; raises `SettingsError` for systems of one track that are not alike."""
    recorded = [] if tools.recorded is None else [each for each in tools.recorded.plan.systems if not each.baseline]
    if settings.context_tokens is not None:
        recorded = [replace(each, context_tokens=settings.context_tokens) for each in recorded]
    plan = Plan(
        evaluator_version=version("memdock-evaluator"),
        data=data,
        systems=(
            *recorded,
            *contestants(settings, tools.systems.values(), tools.baselines),
        ),
        repeats=settings.repeats,
        ingest_repeats=settings.ingest_repeats,
        judge_repeats=settings.judge_repeats,
        seed=settings.seed,
        reference_time=settings.reference_time,
        as_of=settings.as_of,
        answerer=tools.answerer.facts,
        judge=tools.judge.facts,
        judges=tools.judge.each_facts if isinstance(tools.judge, Panel) else {},
        reused=None if tools.recorded is None else tools.recorded.reused,
        profile=settings.profile,
    )
    check_tracks(plan.systems)
    return replace(plan, differs=differences_from_paper(plan)) if settings.profile else plan


def check_without_systems(settings: RunSettings) -> Survey:
    """All that a run refuses before it asks anybody: data, prompts, judges, options that do not go together.

    Raises `SettingsError`, `DatasetError` or `PromptError`.
    """
    _check(settings)
    survey = Selection(settings).survey()
    languages = tuple(survey.facts.languages)
    open_answerer(settings.answerer, languages, seed=settings.seed)
    _judge(settings, languages, Providers())
    systems = announced(settings)
    refuse_unknown_systems(settings.compared.among(systems), systems)
    return survey


def refuse_unknown_systems(compared: Compared, systems: Iterable[SystemFacts]) -> None:
    """Raises `SettingsError` where the report would have to compare what the run of `systems` does not have."""
    names = [system.name for system in systems]
    named = {
        "--family": [name for family in compared.families for name in family.systems],
        "--atemporal": compared.atemporal,
        "--case-study": compared.case_studies,
    }
    for option, wanted in named.items():
        if unknown := [name for name in wanted if name not in names]:
            raise SettingsError(f"{option}: there is no {unknown[0]!r}: the run has {', '.join(names)}")


def _check(settings: RunSettings) -> None:
    if not settings.systems and not settings.baselines:
        raise SettingsError("nothing to evaluate: name a --system or a --baseline")
    if settings.as_of and settings.stop_after == INGEST.name:
        raise SettingsError(
            "--as-of stores a dialogue while its questions are asked: --stop-after retrieve, not ingest"
        )
    if settings.systems and not settings.url:
        raise SettingsError("a --system needs the address of the gateway: give --url")
    for name in settings.baselines:
        if name not in BASELINES:
            raise SettingsError(f"there is no baseline {name!r}: name one of {', '.join(BASELINES)}")
    check_settings(settings)


async def _connect(name: str, settings: RunSettings, stack: AsyncExitStack, say: Say) -> MemorySystem:
    try:
        connected = connect_async(settings.url, system=name, key=settings.key, timeout_s=settings.call_timeout_s)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    return await _described(await stack.enter_async_context(connected), name, settings, say)


async def _described(client: AsyncClient, name: str, settings: RunSettings, say: Say) -> MemorySystem:
    """Asks a system what it is, and refuses what the run would ask of it in vain."""
    try:
        description = await client.describe()
    except NotFoundError as failure:
        others = await _others(client)
        said = f" has no memory system {name!r}: it has {others}" if others else f": {failure.message}"
        raise SettingsError(f"{settings.url}{said}") from failure
    except (UnauthenticatedError, PermissionDeniedError) as failure:
        if not settings.key:
            given = "--key-file FILE, or the variable MEMDOCK_EVAL_KEY_FILE"
            raise SettingsError(f"{settings.url} asks for a key and none was given: {given}") from failure
        raise SettingsError(f"{settings.url} refuses the key: {failure.message} (--key-file, --key)") from failure
    except MemdockError as failure:
        raise RunStoppedError(
            f"memory system {name} at {settings.url} cannot be used: {failure.message} ({failure.reason})"
        ) from failure
    system = MemorySystem(client, description, name=name, patience_s=settings.patience_s, say=say)
    if (k := max(settings.ks)) > description.limits.max_top_k:
        raise SettingsError(f"{name} gives at most {description.limits.max_top_k} memories: --k {k} is more")
    if settings.reference_time and not system.declares(Feature.REFERENCE_TIME):
        raise SettingsError(
            f"{name} takes no reference time (it declares {Feature.REFERENCE_TIME} {Support.UNSUPPORTED}): "
            "leave out --reference-time, or that system"
        )
    return system


async def _others(client: AsyncClient) -> str:
    """The names that a gateway does have; "" of a lone system, which knows no such call and tells its name itself."""
    try:
        return ", ".join(each.system for each in await client.list_systems())
    except MemdockError:
        return ""
