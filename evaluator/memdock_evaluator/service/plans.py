"""A plan that came over the network: read as plan files are, and held to what the server offers.

A plan names data, systems and models; it never says where they are. So there is no address, path or key that a caller
could make the server use.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import orjson
import yaml

from memdock.check import SYSTEM
from memdock_evaluator.answer.prompts import PromptError
from memdock_evaluator.dataset import DatasetError
from memdock_evaluator.dataset.shipped import OWN
from memdock_evaluator.run.command import run as run_command
from memdock_evaluator.run.given import settings_of
from memdock_evaluator.run.plan_file import PlanFileError, plan_fields, take_plan
from memdock_evaluator.run.settings import RunSettings, SettingsError
from memdock_evaluator.run.tools import check_without_systems
from memdock_evaluator.service.documents import Plan
from memdock_evaluator.service.faults import PlanError
from memdock_evaluator.service.offer import Offer

PLACE = "the plan"
ANSWERER, JUDGE = "answerer", "judge"

TAKEN = (
    *("system", "baseline", "data", "language", "dialogue", "format", "zone", ANSWERER, JUDGE, "k", "context-tokens"),
    *("ingest-unit", "track"),
    *(
        "repeats",
        "ingest-repeats",
        "judge-repeats",
        "family",
        "atemporal",
        "case-study",
        "seed",
        "reference-time",
        "as-of",
        "stop-after",
        "allow-failed-turns",
        "trial",
        "sample-dialogues",
    ),
    *("sample-questions", "sample-seed", "shard", "budget"),
)
"""The fields of `memdock-eval run --plan` that a caller may give, with models by name in place of their options."""

_INSTEAD = {
    **dict.fromkeys(("url", "key", "key-file"), "the systems are those of the server's gateway: name them in system"),
    **dict.fromkeys(
        ("answer-url", "answer-model", "answer-key", "answer-key-file", "answer-prompt", "answer-temperature"),
        "name a model of the server's in answerer",
    ),
    **dict.fromkeys(
        (
            *("judge-url", "judge-model", "judge-key", "judge-key-file", "judge-form", "judge-prompt", "rubric"),
            *("judge-temperature", "judge-seed", "judge-tries", "judges"),
        ),
        "name models of the server's in judge",
    ),
    "out": "results have an address of the server's",
    "estimate": "POST the plan to /v1/estimates",
    "prices": "the price table is the server's",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where the server puts what a run needs beside its plan. `data`: the folder that data paths count from."""

    scratch: Path
    data: Path | None = None


def read_plan(text: str) -> Plan:
    """The fields of a plan in YAML or JSON; raises `PlanError` for the first that a caller may not give."""
    try:
        fields = plan_fields(text, PLACE)
    except PlanFileError as error:
        raise PlanError(error.field or "plan", error.what) from error
    plan: dict[str, str | tuple[str, ...]] = {}
    known = {max(option.opts, key=len).lstrip("-") for option in run_command.params}
    for each in fields:
        if each.name in plan:
            raise PlanError(each.name, "it stands there twice")
        if each.name in _INSTEAD:
            raise PlanError(each.name, f"a plan of the service does not take it: {_INSTEAD[each.name]}")
        if each.name not in TAKEN:
            near = get_close_matches(each.name, TAKEN, n=1)
            said = "a plan of the service does not take it: the server decides" if each.name in known else ""
            raise PlanError(each.name, said or f"there is no such field{f'; is {near[0]} meant?' if near else ''}")
        plan[each.name] = each.words if each.is_list else each.words[0]
    return plan


def settings(plan: Plan, offer: Offer, scratch: Path) -> RunSettings:
    """The settings that `memdock-eval run` would have of the plan; raises `PlanError` naming the field.

    `scratch`: an empty folder, which must be there as long as the settings are used.
    """
    # Whether a file is there is asked from here, whereas a run's own paths count from the data folder.
    document = run_document(plan, offer, Files(scratch=scratch, data=offer.data), out="unused")
    context = click.Context(run_command, info_name="run")
    try:
        with context.scope():
            take_plan(context, plan_fields(orjson.dumps(document).decode(), PLACE), PLACE)
            run_command.parse_args(context, [])
            made = settings_of(context, context.params)
    except PlanFileError as error:
        raise PlanError(_shown_name(error.field) or "plan", error.what) from error
    except click.MissingParameter as error:
        raise PlanError(error.param.name if error.param and error.param.name else "plan", "it is missing") from error
    except (click.UsageError, SettingsError) as error:
        said = error.message if isinstance(error, click.UsageError) else str(error)
        raise PlanError(_field_in(said), said) from error
    if not (made.systems or made.baselines):
        raise PlanError("system", "nothing to evaluate: name a system or a baseline")
    if made.as_of and made.stop_after == "ingest":
        raise PlanError("stop-after", "as-of stores a dialogue while its questions are asked: stop after retrieve")
    return made


def run_document(
    plan: Plan, offer: Offer, files: Files, *, out: str, budget: float | None = None, docker: str = ""
) -> Mapping[str, object]:
    """The plan that a process `memdock-eval run` gets: the caller's words, and where the server has what they name.

    `budget`: in place of the plan's; `docker`: the engine that is asked of the systems' containers. Raises `PlanError`.
    """
    document: dict[str, Any] = {
        name: list(words) if isinstance(words, tuple) else words
        for name, words in plan.items()
        if name not in (ANSWERER, JUDGE)
    }
    document["out"] = out
    if "data" in document:
        document["data"] = [_data(word, offer, files.data) for word in _words(plan, "data")]
    if "system" in document:
        if not offer.gateway:
            raise PlanError("system", "this server has no gateway, and so no systems: name a baseline")
        for name in _words(plan, "system"):
            if not SYSTEM.fullmatch(name):
                raise PlanError("system", f"{name!r} is no system's name")
        document["url"] = offer.gateway
        if offer.gateway_key_file:
            document["key-file"] = str(offer.gateway_key_file)
        if docker:
            document["docker"] = docker
    if ANSWERER in plan:
        document |= _answerer(plan, offer)
    if JUDGE in plan:
        document["judges"] = str(_judges_file(plan, offer, files.scratch))
    if offer.prices_file:
        document["prices"] = str(offer.prices_file)
    document |= _budget(plan, offer, budget)
    return document


def check_run(made: RunSettings, offer: Offer) -> None:
    """Raises `PlanError` for what the run would refuse, or ask too much, when its turn comes."""
    try:
        survey = check_without_systems(made)
    except SettingsError as error:
        raise PlanError(_field_in(str(error), "data"), offer.without_places(str(error))) from error
    except PromptError as error:
        raise PlanError(ANSWERER if made.answerer.endpoint else JUDGE, offer.without_places(str(error))) from error
    except DatasetError as error:
        raise PlanError("data", offer.without_places(str(error))) from error
    stores = len(made.systems) * len(made.ks) * made.ingest_repeats + len(made.baselines)
    questions = sum(size.questions for size in survey.sizes) * stores * made.repeats * made.judge_repeats
    if questions > offer.most_questions:
        said = (
            f"the run would ask {questions} questions (each for each system, k and repeat), and this server allows "
            f"{offer.most_questions}: take a sample, or fewer systems or repeats"
        )
        raise PlanError("data", said)


def check_money(made: RunSettings, offer: Offer) -> None:
    """Raises `PlanError` where the server's ceiling could not be kept for want of a price."""
    if made.budget is None:
        return
    endpoints = [made.answerer.endpoint, *(judge.settings.endpoint for judge in made.judges)]
    for field, endpoint in zip((ANSWERER, *(JUDGE for _ in made.judges)), endpoints, strict=True):
        if endpoint is not None and offer.prices.of(endpoint.model) is None:
            said = f"{endpoint.model} has no price, and a budget needs the price of every model"
            raise PlanError(field, said)


def _data(word: str, offer: Offer, folder: Path | None) -> str:
    language, equals, name = word.partition("=")
    declared = f"{language}=" if equals and language.isalpha() and len(language) <= 3 else ""
    name = name if declared else word
    if name == OWN:
        return word
    offer.data_file(name)
    return declared + (str(folder / name) if folder else name)


def _answerer(plan: Plan, offer: Offer) -> dict[str, object]:
    names, known = _words(plan, ANSWERER), offer.models.answerers
    if len(names) != 1:
        raise PlanError(ANSWERER, "a run has one answerer")
    if names[0] not in known:
        raise PlanError(ANSWERER, _not_offered(names[0], known))
    model = known[names[0]]
    files = {"answer-key-file": model.key_file, "answer-prompt": model.prompt}
    return {
        "answer-url": model.url,
        "answer-model": model.model,
        "answer-temperature": str(model.temperature),
        **{name: path for name, path in files.items() if path},
    }


def _judges_file(plan: Plan, offer: Offer, scratch: Path) -> Path:
    known = offer.models.judges
    for name in _words(plan, JUDGE):
        if name not in known:
            raise PlanError(JUDGE, _not_offered(name, known))
    path = scratch / "judges.yaml"
    path.write_text(yaml.safe_dump([dict(known[name]) for name in dict.fromkeys(_words(plan, JUDGE))]), "utf-8")
    return path


def _budget(plan: Plan, offer: Offer, budget: float | None) -> dict[str, object]:
    written = plan.get("budget")
    if budget is None and isinstance(written, str):
        try:
            budget = float(written)
        except ValueError:
            return {}  # `run` itself tells what is wrong with it
    if offer.ceiling is not None and budget is not None and not budget <= offer.ceiling:
        raise PlanError("budget", f"{budget:g} is more than this server allows a run, {offer.ceiling:g}")
    wanted = offer.ceiling if budget is None else budget
    return {} if wanted is None else {"budget": str(wanted)}


def _not_offered(name: str, known: Mapping[str, object]) -> str:
    return f"this server has no {name!r}; it has {', '.join(known) or 'none: leave it out for the offline rules'}"


def _words(plan: Plan, name: str) -> Sequence[str]:
    words = plan[name]
    return (words,) if isinstance(words, str) else words


def _shown_name(field: str) -> str:
    """The field of the caller's that a field of the run was made from."""
    if field.startswith("answer-"):
        return ANSWERER
    return JUDGE if field in ("judges", "rubric") or field.startswith("judge-") else field


def _field_in(said: str, otherwise: str = "plan") -> str:
    """The field that a sentence of the command line is about: its first option."""
    found = re.search(r"--([a-z][a-z-]*)", said)
    return _shown_name(found[1]) if found else otherwise
