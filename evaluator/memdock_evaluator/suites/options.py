"""The options of the suites: those that `memdock-eval run` has too are its own, with its words and its checks."""

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from memdock_evaluator.answer.endpoint import ModelSettings
from memdock_evaluator.results.plan import Sample
from memdock_evaluator.run.command import refuse_unknown_variables, run
from memdock_evaluator.run.given import answerer_of, judge_of, judges_of, secret_of, source_of, without_secrets
from memdock_evaluator.run.settings import RunSettings, SettingsError

Decorator: TypeAlias = Callable[[Any], Any]

SYSTEM_OPTIONS = ("url", "key", "key_file", "systems")
DATA_OPTIONS = ("data", "languages", "dialogues", "sample_dialogues", "format_", "zone")
PATIENCE_OPTIONS = ("call_timeout", "flush_timeout", "patience")


def options_of_run(*names: str) -> Decorator:
    """Puts these options of `run` before the command's own."""
    known = {option.name: option for option in run.params}

    def decorate(command: click.Command) -> click.Command:
        command.params[:0] = [known[name] for name in names]
        return command

    return decorate


_OF_ANSWERS = (
    *("judge_url", "judge_model", "judge_key", "judge_key_file", "judge_form", "judge_prompt", "rubric"),
    *("judge_temperature", "judge_seed", "judge_tries", "judges", "trial"),
    *("model_concurrency", "model_timeout", "model_tries"),
)
"""Options that change nothing where no answer is asked for."""


def _refuse_without_answers(context: click.Context) -> None:
    for option in context.command.params:
        typed = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if option.name in _OF_ANSWERS and typed:
            raise SettingsError(
                f"{option.opts[0]} is for answers, and none are asked for: give --answer-url and --answer-model"
            )


def settings_of(context: click.Context) -> RunSettings:
    """What the options say that a command shares with `run`; raises `SettingsError` or `click.UsageError`."""
    refuse_unknown_variables()
    given = context.params
    plain = (
        *("url", "systems", "languages", "dialogues", "zone", "out", "ingest_unit", "seed", "keep", "trial", "cache"),
        *("concurrency", "parallel_questions"),
    )
    asks_models = "answer_url" in given
    if asks_models and answerer_of(context).endpoint is None:
        _refuse_without_answers(context)
    settings = RunSettings(
        **{name: given[name] for name in plain if name in given},
        ks=(given.get("k", 10),),
        answerer=answerer_of(context) if asks_models else ModelSettings(),
        judge=judge_of(context) if asks_models else ModelSettings(),
        judges=judges_of(context) if asks_models else (),
        key=secret_of(context, "key"),
        data=tuple(map(source_of, given.get("data", ()))),
        format=given.get("format_"),
        sample=_sample(context),
        flush_timeout_s=given["flush_timeout"],
        call_timeout_s=given["call_timeout"],
        patience_s=given["patience"],
        command=without_secrets(("memdock-eval", *sys.argv[1:])),
    )
    if not settings.systems:
        raise SettingsError("nothing to test: name a --system")
    return settings


def _sample(context: click.Context) -> Sample | None:
    """Whole dialogues: a question out of its dialogue has no neighbours."""
    dialogues = context.params.get("sample_dialogues")
    return None if dialogues is None else Sample(dialogues=dialogues, questions=None, seed=context.params["seed"])
