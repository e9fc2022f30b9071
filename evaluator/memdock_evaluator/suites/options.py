"""The options of the suites: those that `memdock-eval run` has too are its own, with its words and its checks."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import click
from click.core import ParameterSource

from memdock.variables import unknown_variables
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.dataset.shipped import OWN
from memdock_evaluator.run.command import run, without_secrets
from memdock_evaluator.run.settings import DataSource, RunSettings, SettingsError

Decorator: TypeAlias = Callable[[click.Command], click.Command]

SYSTEM_OPTIONS = ("url", "key", "key_file", "systems")
DATA_OPTIONS = ("data", "languages", "dialogues", "format_", "zone")
MODEL_OPTIONS = (
    *("answer_url", "answer_model", "answer_key", "answer_key_file", "answer_prompt"),
    *("judge_url", "judge_model", "judge_key", "judge_key_file", "judge_form", "judge_prompt", "rubric", "trial"),
    *("model_concurrency", "model_timeout", "model_tries"),
)
PATIENCE_OPTIONS = ("call_timeout", "flush_timeout", "patience")

out_option = click.option(
    "--out",
    required=True,
    metavar="DIR",
    help="Folder of the results, a new one, or an address such as s3://bucket/x.",
)


def options_of_run(*names: str) -> Decorator:
    """Puts these options of `run` before the command's own."""
    known = {option.name: option for option in run.params}

    def decorate(command: click.Command) -> click.Command:
        command.params[:0] = [known[name] for name in names]
        return command

    return decorate


def settings_of(context: click.Context) -> RunSettings:
    """What the options say that a command shares with `run`; raises `SettingsError` or `click.UsageError`."""
    _refuse_unknown_variables()
    given = context.params
    plain = (
        *("url", "systems", "languages", "dialogues", "zone", "out", "k", "ingest_unit", "seed", "keep", "trial"),
        *("concurrency", "parallel_questions"),
    )
    settings = RunSettings(
        **{name: given[name] for name in plain if name in given},
        key=_secret(context, "key"),
        data=tuple(map(_source, given.get("data", ()))),
        format=given.get("format_"),
        answerer=ModelSettings(endpoint=_endpoint("answer", context), prompt=str(given.get("answer_prompt") or "")),
        judge=ModelSettings(
            endpoint=_endpoint("judge", context),
            prompt=str(given.get("judge_prompt") or ""),
            rubric=str(given.get("rubric") or ""),
            form=given.get("judge_form", "json"),
        ),
        flush_timeout_s=given["flush_timeout"],
        call_timeout_s=given["call_timeout"],
        patience_s=given["patience"],
        command=without_secrets(("memdock-eval", *sys.argv[1:])),
    )
    if not settings.systems:
        raise SettingsError("nothing to test: name a --system")
    return settings


def _source(written: str) -> DataSource:
    language, equals, path = written.partition("=")
    declared = bool(equals) and language.isalpha() and len(language) <= 3
    source = DataSource(path=path, language=language.lower()) if declared else DataSource(path=written)
    if source.path != OWN and not Path(source.path).is_file():
        raise SettingsError(f"--data {written}: there is no file {source.path}")
    return source


def _endpoint(purpose: str, context: click.Context) -> ModelEndpoint | None:
    given = context.params
    url, model = given.get(f"{purpose}_url", ""), given.get(f"{purpose}_model", "")
    if not url and not model:
        return None
    if not url.startswith(("http://", "https://")):
        raise SettingsError(f"--{purpose}-url {url!r}: give the endpoint's address, such as https://host/v1")
    if not model:
        raise SettingsError(f"--{purpose}-model is missing: name a model of {url}")
    return ModelEndpoint(
        purpose=purpose,
        url=url,
        model=model,
        key=_secret(context, f"{purpose}_key"),
        timeout_s=given["model_timeout"],
        tries=given["model_tries"],
        concurrency=given["model_concurrency"],
    )


def _secret(context: click.Context, name: str) -> str:
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


def _refuse_unknown_variables() -> None:
    """Those of `run` are known here too: a shell that is set up for the one must do for the others."""
    known = {option.envvar for option in run.params if isinstance(option.envvar, str)}
    if unknown := unknown_variables(os.environ, known):
        raise click.UsageError(f"there is no setting {unknown[0]}: known are {', '.join(sorted(known))}")
