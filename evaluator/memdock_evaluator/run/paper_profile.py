"""The profile `paper`: what a run must be given to be like the paper's, and the fields in which it is not."""

from collections.abc import Iterator
from dataclasses import replace

from memdock_evaluator.answer.endpoint import ModelSettings
from memdock_evaluator.dataset.published import DIALOGUES, QUESTIONS
from memdock_evaluator.results.plan import ModelFacts, Plan, ProfileDifference
from memdock_evaluator.run.settings import RunSettings, SettingsError

PAPER = "paper"
SYSTEM = "rag-dense"
"""Dense retrieval over user-assistant pairs, the paper's simple RAG."""

_K, _INGEST_UNIT = 10, "pair"
_ANSWERER = "gpt-4.1-mini"
_EMBEDDERS = {"ru": "FRIDA", "en": "Qwen3-Embedding-0.6B"}
_JUDGES = {"ru": ("pollux", "pollux"), "en": ("deepseek-r1", "json")}
"""By language: what the model's name holds, and its form."""


def like_the_paper(settings: RunSettings) -> RunSettings:
    """The settings with the paper's system where none is named.

    Raises `SettingsError` where an endpoint is missing, or a prompt or rubric is not from a file of the user's: those
    of the paper are in its repository, ours are other words.
    """
    if settings.answerer.endpoint is None:
        raise SettingsError("--profile paper: give --answer-url and --answer-model")
    if not settings.answerer.prompt:
        raise SettingsError("--profile paper: give --answer-prompt, a file with the answer prompt of the paper's code")
    for name, judge in _judges(settings):
        if judge.endpoint is None:
            raise SettingsError("--profile paper: give --judges, POLLUX for Russian and a json judge for English")
        for option, path in (("judge-prompt", judge.prompt), ("rubric", judge.rubric)):
            if not path:
                where = f"{option.removeprefix('judge-')} of {name} in --judges" if name else f"--{option}"
                raise SettingsError(f"--profile paper: give {where}, a file with that of the paper's code")
    return settings if settings.systems else replace(settings, systems=(SYSTEM,))


def differences_from_paper(plan: Plan) -> tuple[ProfileDifference, ...]:
    """What the manifest tells of the run and is not as in the paper; temperatures and seeds the paper does not tell."""
    found = (
        *_data(plan),
        *_systems(plan),
        ("k", _K, ", ".join(map(str, plan.ks))),
        ("ingest_unit", _INGEST_UNIT, ", ".join(plan.ingest_units)),
        ("repeats", 1, plan.repeats),
        ("ingest_repeats", 1, plan.ingest_repeats),
        ("judge_repeats", 1, plan.judge_repeats),
        ("reference_time", False, plan.reference_time),
        ("as_of", False, plan.as_of),
        *_model("answerer", plan.answerer, _ANSWERER),
        *_judged(plan),
    )
    return tuple(
        ProfileDifference(field=field, paper=_written(paper), run=_written(run))
        for field, paper, run in found
        if _written(paper) != _written(run)
    )


def _judges(settings: RunSettings) -> Iterator[tuple[str, ModelSettings]]:
    """Those that `--judges` names, or the only one under no name."""
    if settings.judges:
        yield from ((judge.name, judge.settings) for judge in settings.judges)
    else:
        yield "", settings.judge


def _data(plan: Plan) -> Iterator[tuple[str, object, object]]:
    for language, counts in plan.data.languages.items():
        yield f"data.languages.{language}.dialogues", DIALOGUES, counts.dialogues
        yield f"data.languages.{language}.questions", QUESTIONS, counts.questions


def _systems(plan: Plan) -> Iterator[tuple[str, object, object]]:
    for system in plan.systems:
        if system.baseline:
            continue
        yield f"systems.{system.name}", SYSTEM, system.system
        embedders = ", ".join(model.name for model in system.models if model.purpose == "embedding")
        for language in plan.data.languages:
            wanted = _EMBEDDERS.get(language, "none")
            yield f"systems.{system.name}.embedder.{language}", wanted, _known(wanted, embedders)


def _model(place: str, model: ModelFacts, wanted: str) -> Iterator[tuple[str, object, object]]:
    yield f"{place}.model", wanted, _known(wanted, model.model or model.kind)


def _judged(plan: Plan) -> Iterator[tuple[str, object, object]]:
    for language in plan.data.languages:
        of_several = (each.model for each in plan.judges.values() if language in each.primary_for)
        judge = next(of_several, plan.judge)
        wanted, form = _JUDGES.get(language, ("none", "none"))
        yield from _model(f"judge.{language}", judge, wanted)
        yield f"judge.{language}.form", form, judge.form


def _known(wanted: str, name: str) -> str:
    """The paper's name for a model of its kin ("openai/gpt-4.1-mini"), else the model's own."""
    return wanted if wanted.casefold() in name.casefold() else name


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
