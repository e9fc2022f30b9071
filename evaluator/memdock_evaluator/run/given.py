"""What the options of `memdock-eval run` say, as settings; other commands share parts of them.

What was typed goes before a variable, and that before a plan file.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings, NamedJudge
from memdock_evaluator.cost.prices import PriceError, Prices, read_prices
from memdock_evaluator.dataset.shipped import OWN
from memdock_evaluator.results.plan import Sample, Track
from memdock_evaluator.run.comparing import compared_of
from memdock_evaluator.run.paper_profile import like_the_paper
from memdock_evaluator.run.settings import DataSource, RunSettings, SettingsError
from memdock_evaluator.run.tracks import read_vendor_settings

_SECRETS = ("--key", "--answer-key", "--judge-key")
_PRECEDENCE = (ParameterSource.DEFAULT_MAP, ParameterSource.ENVIRONMENT, ParameterSource.COMMANDLINE)
"""What goes before what stands ahead of it: a plan, a variable, what is typed."""


def settings_of(context: click.Context, given: Mapping[str, Any]) -> RunSettings:
    """What the options of `run` ask for; raises `SettingsError`."""
    plain = {
        name: given[name]
        for name in (
            *("url", "systems", "baselines", "languages", "dialogues", "zone", "out"),
            *("ks", "ingest_unit", "repeats", "ingest_repeats", "judge_repeats", "seed", "reference_time", "as_of"),
            *("keep", "trial", "cache", "docker"),
            *("concurrency", "parallel_questions"),
        )
    }
    settings = RunSettings(
        **plain,
        key=secret_of(context, "key"),
        data=tuple(map(source_of, given["data"])),
        format=given["format_"],
        stop_after=given["stop_after"] or "",
        again=given["again"],
        context_tokens=given["context_tokens"],
        track=Track(given["track"]) if given["track"] else None,
        vendor_settings=read_vendor_settings(given["vendor_settings"]),
        compared=compared_of(given),
        prices=prices_of(context),
        budget=given["budget"],
        sample=_sample(given),
        shard=given["shard"],
        answerer=answerer_of(context),
        judge=judge_of(context),
        judges=judges_of(context),
        allowed_failed_turns=given["allow_failed_turns"] / 100,
        flush_timeout_s=given["flush_timeout"],
        call_timeout_s=given["call_timeout"],
        patience_s=given["patience"],
        profile=given["profile"] or "",
        command=without_secrets(("memdock-eval", *sys.argv[1:])),
    )
    return like_the_paper(settings) if settings.profile else settings


def prices_of(context: click.Context) -> Prices:
    """The price table of `--prices`, or the shipped one; raises `SettingsError`."""
    try:
        return read_prices(context.params["prices"])
    except PriceError as error:
        raise SettingsError(str(error)) from error


def answerer_of(context: click.Context) -> ModelSettings:
    """The answerer of the `--answer-...` options; raises `SettingsError`."""
    return ModelSettings(endpoint=_endpoint("answer", context), prompt=str(context.params["answer_prompt"] or ""))


def judge_of(context: click.Context) -> ModelSettings:
    """The judge of the `--judge-...` options; the offline one where `--judges` counts. Raises `SettingsError`."""
    if _takes_judges(context):
        return ModelSettings()
    given = context.params
    return ModelSettings(
        endpoint=_endpoint("judge", context),
        prompt=str(given["judge_prompt"] or ""),
        rubric=str(given["rubric"] or ""),
        form=given["judge_form"],
        seed=given["judge_seed"],
        verdict_tries=given["judge_tries"],
    )


def judges_of(context: click.Context) -> tuple[NamedJudge, ...]:
    """The judges of the `--judges` file; none without it, or where one judge counts. Raises `SettingsError`."""
    given = context.params
    if not _takes_judges(context):
        return ()
    _refuse_without_model("judge", context)
    from memdock_evaluator.judging.configured import read_judges

    limits = {"timeout_s": given["model_timeout"], "tries": given["model_tries"]}
    try:
        return tuple(read_judges(given["judges"], **limits, concurrency=given["model_concurrency"]))
    except SettingsError as error:
        raise SettingsError(f"--judges {error}") from error


def _takes_judges(context: click.Context) -> bool:
    """Whether `--judges` counts, or the one judge; raises `SettingsError` where neither goes before the other."""
    given = context.params
    if given["judges"] is None:
        return False
    several = _precedence(context, "judges")
    one = max((_precedence(context, name) for name in ("judge_url", "judge_model") if given[name]), default=-1)
    if several == one:
        raise SettingsError("give --judges, or --judge-url and --judge-model, not both")
    return several > one


def _precedence(context: click.Context, name: str) -> int:
    source = context.get_parameter_source(name)
    return _PRECEDENCE.index(source) if source in _PRECEDENCE else -1


def _sample(given: Mapping[str, Any]) -> Sample | None:
    dialogues, questions = given["sample_dialogues"], given["sample_questions"]
    if dialogues is None and questions is None:
        return None
    return Sample(dialogues=dialogues, questions=questions, seed=given["sample_seed"])


def source_of(written: str) -> DataSource:
    """What a word of --data names: a file, with its language where it stands before; raises `SettingsError`."""
    language, equals, path = written.partition("=")
    declared = bool(equals) and language.isalpha() and len(language) <= 3
    source = DataSource(path=path, language=language.lower()) if declared else DataSource(path=written)
    if source.path != OWN and not Path(source.path).is_file():
        raise SettingsError(f"--data {written}: there is no file {source.path}")
    return source


def _endpoint(purpose: str, context: click.Context) -> ModelEndpoint | None:
    given = context.params
    url, model = given[f"{purpose}_url"], given[f"{purpose}_model"]
    if not url and not model:
        _refuse_without_model(purpose, context)
        return None
    if not url:
        raise SettingsError(
            f"--{purpose}-url is missing: give the address of the endpoint of {model}, like https://host/v1"
        )
    if not url.startswith(("http://", "https://")):
        raise SettingsError(f"--{purpose}-url {url!r}: give the endpoint's address, such as https://host/v1")
    if not model:
        raise SettingsError(f"--{purpose}-model is missing: name a model of {url}")
    return ModelEndpoint(
        purpose=purpose,
        url=url,
        model=model,
        key=secret_of(context, f"{purpose}_key"),
        temperature=given[f"{purpose}_temperature"],
        timeout_s=given["model_timeout"],
        tries=given["model_tries"],
        concurrency=given["model_concurrency"],
    )


def _refuse_without_model(purpose: str, context: click.Context) -> None:
    """What was typed for a model must not be dropped where no model is asked; variables may stand there unused."""
    for option in context.command.params:
        name = option.name or ""
        if _is_of_model(name, purpose) and _is_typed(context, name):
            by_file = purpose == "judge" and context.params["judges"] is not None
            do = "write it into the file of --judges" if by_file else f"give --{purpose}-url and --{purpose}-model"
            raise SettingsError(f"{option.opts[0]} is for the one model of --{purpose}-url, and none was given: {do}")


def _is_of_model(name: str, purpose: str) -> bool:
    """Whether an option is for the one model; how often answers are judged is the run's to say."""
    if name == "judge_repeats":
        return False
    return name.startswith(f"{purpose}_") or (name == "rubric" and purpose == "judge")


def secret_of(context: click.Context, name: str) -> str:
    """The key itself or the content of its file, "" without either; of both, the one that was typed, else the key."""
    key: str = context.params[name]
    file: Path | None = context.params[f"{name}_file"]
    if file is None or (key and _is_typed(context, name) >= _is_typed(context, f"{name}_file")):
        return key.strip()
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: the key cannot be read from it") from error


def _is_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def without_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """A command line with "***" for every key that was typed."""
    shown: list[str] = []
    for word in words:
        flag, equals, _ = word.partition("=")
        if shown and shown[-1] in _SECRETS:
            shown.append("***")
        elif equals and flag in _SECRETS:
            shown.append(f"{flag}=***")
        else:
            shown.append(word)
    return tuple(shown)
