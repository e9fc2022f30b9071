"""The options of `memdock-eval run`, in the groups in which its help shows them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

from memdock_evaluator.baselines import BASELINES
from memdock_evaluator.dataset.formats import FORMATS
from memdock_evaluator.dataset.zone import zone_option
from memdock_evaluator.ranges import (
    AT_ONCE,
    ITEMS,
    MONEY,
    PERCENT,
    REPEATS,
    SECONDS,
    SEED,
    SOME_SECONDS,
    TEMPERATURE,
    TRIES,
    K,
)
from memdock_evaluator.results.plan import Track
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run.choice import ChoiceError, Shard
from memdock_evaluator.run.plan_file import read_plan_file
from memdock_evaluator.run.settings import IngestUnit, SettingsError

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


_FILE = click.Path(dir_okay=False, path_type=Path)


def _ingest_unit(_: click.Context, __: click.Parameter, written: str) -> IngestUnit:
    try:
        return IngestUnit(name=written)
    except SettingsError as error:
        raise click.BadParameter(str(error)) from error


def _languages(_: click.Context, __: click.Parameter, written: tuple[str, ...]) -> tuple[str, ...]:
    """ "ru,en" and repeated options are the same."""
    codes = [code.strip().lower() for each in written for code in each.split(",")]
    if not all(code.isalpha() for code in codes):
        raise click.BadParameter(f"{','.join(written)!r} must be language codes such as ru or ru,en")
    return tuple(dict.fromkeys(codes))


def _outcomes(_: click.Context, __: click.Parameter, written: str | None) -> tuple[str, ...]:
    """ "system_error,refused": what is settled and yet no answer."""
    known = (Outcome.SYSTEM_ERROR.value, Outcome.REFUSED.value)
    found = tuple(dict.fromkeys(each.strip() for each in (written or "").split(",") if each.strip()))
    if (written is not None and not found) or not set(found) <= set(known):
        raise click.BadParameter(f"{written!r}: give {known[0]}, {known[1]}, or both with a comma between")
    return found


def _once(_: click.Context, __: click.Parameter, given: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(given))


def lasting(_: click.Context, __: click.Parameter, address: str) -> str:
    """A callback: results at an address that is gone with the process would be lost."""
    if any(part.partition("://")[0] == "memory" for part in address.split("::")):
        raise click.BadParameter(f"{address} is gone when the command ends: give a folder, or s3://bucket/run")
    return address


def _shard(_: click.Context, __: click.Parameter, written: str | None) -> Shard | None:
    try:
        return None if written is None else Shard.read(written)
    except ChoiceError as error:
        raise click.BadParameter(str(error)) from error


def _grouped(*options: Decorator) -> Decorator:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


what_options = _grouped(
    click.option(
        "--plan",
        type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=read_plan_file,
        help="A YAML file of these options by their long names, such as system: [a, b]; - for standard input. What is "
        "typed or in the environment goes before it.",
    ),
    click.option(
        "--url",
        envvar="MEMDOCK_EVAL_URL",
        default="",
        metavar="URL",
        help="The gateway, or one system alone: grpc://host:port or http://host:port.",
    ),
    click.option(
        "--key",
        envvar="MEMDOCK_EVAL_KEY",
        default="",
        metavar="KEY",
        help="Its key; better in the environment or in a file than typed.",
    ),
    click.option("--key-file", envvar="MEMDOCK_EVAL_KEY_FILE", type=_FILE, help="A file that holds the key."),
    click.option(
        "--system", "systems", multiple=True, metavar="NAME", help="A memory system to evaluate; may be repeated."
    ),
    click.option(
        "--baseline",
        "baselines",
        multiple=True,
        type=click.Choice(list(BASELINES)),
        help="Evaluate without a memory system; may be repeated.",
    ),
    click.option(
        "--data",
        multiple=True,
        required=True,
        metavar="[LANG=]PATH",
        help='A data file; may be repeated; "own" is the bundled data.',
    ),
    click.option(
        "--language",
        "languages",
        multiple=True,
        callback=_languages,
        metavar="CODES",
        help="Only these languages, such as ru,en.  [default: all]",
    ),
    click.option(
        "--dialogue",
        "dialogues",
        multiple=True,
        metavar="ID",
        help="Only this dialogue; may be repeated.  [default: all]",
    ),
    click.option(
        "--format",
        "format_",
        type=click.Choice([known.name for known in FORMATS]),
        help="Format of the files.  [default: found from the first record]",
    ),
    zone_option,
    click.option(
        "--out",
        default="",
        callback=lasting,
        metavar="DIR",
        help="Folder of the results, or an address such as s3://bucket/run. A run that was stopped "
        "goes on in its folder.  [required, but for --estimate]",
    ),
)

how_options = _grouped(
    click.option(
        "--profile",
        type=click.Choice(["paper"]),
        help="As in RUMBA's paper: rag-dense, 10 memories, prompts and rubrics from your copy of its code. What "
        "differs stands in the manifest.",
    ),
    click.option(
        "--k",
        "ks",
        multiple=True,
        type=K,
        callback=_once,
        metavar="N",
        default=(10,),
        show_default="10",
        help="Memories a question; may be repeated: each system is filled once and asked for each.",
    ),
    click.option(
        "--context-tokens",
        type=ITEMS,
        metavar="N",
        help="Give the answer model whole memories, best first, as long as they take N tokens together (a quarter of "
        "the bytes of UTF-8).  [default: all]",
    ),
    click.option(
        "--track",
        type=click.Choice([track.value for track in Track]),
        help="What systems are compared as: controlled, alike but for their memory, or vendor, each by the settings of "
        "--vendor-settings. Systems of two tracks are never ranked together.",
    ),
    click.option(
        "--vendor-settings",
        multiple=True,
        metavar="SYSTEM=FILE",
        help="The settings that a system runs with, for the manifest and the report; no keys. May be repeated.",
    ),
    click.option(
        "--ingest-unit",
        metavar="UNIT",
        default="pair",
        show_default=True,
        callback=_ingest_unit,
        help="Turns a request: pair, turn, session or batch:N.",
    ),
    click.option(
        "--repeats",
        type=REPEATS,
        metavar="N",
        default=1,
        show_default=True,
        help="How often each question is asked: Retrieve, answer and verdict.",
    ),
    click.option(
        "--ingest-repeats",
        type=REPEATS,
        metavar="N",
        default=1,
        show_default=True,
        help="How often each dialogue is stored, each time in a space of its own; every question is asked of each.",
    ),
    click.option(
        "--judge-repeats",
        type=REPEATS,
        metavar="N",
        default=1,
        show_default=True,
        help="Verdicts on each answer.",
    ),
    click.option("--seed", type=SEED, metavar="N", default=0, show_default=True, help="Seed of the models."),
    click.option(
        "--reference-time", is_flag=True, help="Tell the systems the question's date, not the answer model alone."
    ),
    click.option("--as-of", is_flag=True, help="Ask each question when only what had been said by its date is stored."),
    click.option(
        "--stop-after",
        type=click.Choice(["ingest", "retrieve", "answer"]),
        help="Run the stages up to this one alone; the same command without it goes on from there.",
    ),
    click.option(
        "--again",
        callback=_outcomes,
        metavar="OUTCOMES",
        help="In a run that is there, ask the questions again that ended as system_error or refused (or both, with a "
        "comma); the manifest keeps what it changed, and the summary says so.",
    ),
    click.option("--keep", is_flag=True, help="Leave the run's spaces filled at the end."),
    click.option(
        "--allow-failed-turns",
        type=PERCENT,
        metavar="PERCENT",
        default=0.0,
        show_default=True,
        help="Of a dialogue's turns, how many a system may fail at; with more the run ends with exit code 3, and the "
        "same command sends them again.",
    ),
)

judge_options = _grouped(
    click.option(
        "--judge-url",
        envvar="MEMDOCK_EVAL_JUDGE_URL",
        default="",
        metavar="URL",
        help="OpenAI-style endpoint that judges.  [default: offline-overlap, no measure of answer quality]",
    ),
    click.option("--judge-model", envvar="MEMDOCK_EVAL_JUDGE_MODEL", default="", metavar="NAME", help="Its model."),
    click.option("--judge-key", envvar="MEMDOCK_EVAL_JUDGE_KEY", default="", metavar="KEY", help="Its key."),
    click.option(
        "--judge-key-file", envvar="MEMDOCK_EVAL_JUDGE_KEY_FILE", type=_FILE, help="A file that holds its key."
    ),
    click.option(
        "--judge-form",
        type=click.Choice(["json", "pollux"]),
        default="json",
        show_default=True,
        help="What the judge reads and writes: any chat model's, or POLLUX's own form.",
    ),
    click.option(
        "--judge-prompt",
        type=_FILE,
        help="Your prompt in place of the bundled ones; {lang} in the path is the language.",
    ),
    click.option(
        "--rubric", type=_FILE, help="Your rubric in place of the bundled ones; {lang} in the path is the language."
    ),
    click.option(
        "--judge-temperature", type=TEMPERATURE, metavar="T", default=0.0, show_default=True, help="Its temperature."
    ),
    click.option("--judge-seed", type=SEED, metavar="N", help="Its seed.  [default: that of the run]"),
    click.option(
        "--judge-tries",
        type=TRIES,
        metavar="N",
        default=3,
        show_default=True,
        help="How often it is asked where its reply holds no verdict.",
    ),
    click.option(
        "--judges",
        type=_FILE,
        help="Several judges, from a YAML file, in place of --judge-...: of each language the first is primary, the "
        "others judge beside it.",
    ),
)

call_options = _grouped(
    click.option(
        "--model-concurrency",
        type=AT_ONCE,
        metavar="N",
        default=16,
        show_default=True,
        help="Calls at once at one provider (host and key), at the most: fewer while it answers 429 or 503 or is late.",
    ),
    click.option(
        "--model-timeout",
        type=SOME_SECONDS,
        metavar="SECONDS",
        default=120.0,
        show_default=True,
        help="Seconds for a try of a model's call.",
    ),
    click.option(
        "--model-tries",
        type=TRIES,
        metavar="N",
        default=4,
        show_default=True,
        help="Tries of a model's call: time-outs, lost connections, 408, 409, 425, 429, 5xx and replies that are "
        "none are tried again.",
    ),
    click.option(
        "--cache",
        default="",
        metavar="FILE",
        help="A file that keeps the models' replies for the next run that asks the same (SQLite, made where there is "
        "none; several runs may share it). What is asked for again costs nothing then.  [default: none]",
    ),
    click.option(
        "--docker",
        envvar="MEMDOCK_EVAL_DOCKER",
        default="",
        metavar="URL",
        help="The engine that runs the systems' containers, such as unix:///var/run/docker.sock, or tcp://host:2375 of "
        "a proxy that only reads: images, limits, peak memory and processor time of each go into the manifest.",
    ),
)

model_options = _grouped(
    click.option(
        "--answer-url",
        envvar="MEMDOCK_EVAL_ANSWER_URL",
        default="",
        metavar="URL",
        help="OpenAI-style endpoint that answers, such as https://api.openai.com/v1.  [default: "
        "offline-extractive, no measure of answer quality]",
    ),
    click.option("--answer-model", envvar="MEMDOCK_EVAL_ANSWER_MODEL", default="", metavar="NAME", help="Its model."),
    click.option("--answer-key", envvar="MEMDOCK_EVAL_ANSWER_KEY", default="", metavar="KEY", help="Its key."),
    click.option(
        "--answer-key-file", envvar="MEMDOCK_EVAL_ANSWER_KEY_FILE", type=_FILE, help="A file that holds its key."
    ),
    click.option(
        "--answer-prompt",
        type=_FILE,
        help="Your prompt in place of the bundled ones; {lang} in the path is the language.",
    ),
    click.option(
        "--answer-temperature", type=TEMPERATURE, metavar="T", default=0.0, show_default=True, help="Its temperature."
    ),
    judge_options,
    click.option(
        "--trial/--no-trial",
        default=True,
        show_default=True,
        help="Ask the models a small question first, so that one that cannot work ends the run before it begins.",
    ),
)

question_options = _grouped(
    click.option("--concurrency", type=AT_ONCE, metavar="N", default=4, show_default=True, help="Dialogues at once."),
    click.option(
        "--parallel-questions",
        type=AT_ONCE,
        metavar="N",
        default=4,
        show_default=True,
        help="Questions of a dialogue at once, put to a memory system.",
    ),
)

pace_options = _grouped(
    question_options,
    call_options,
    click.option(
        "--call-timeout",
        type=SOME_SECONDS,
        metavar="SECONDS",
        default=60.0,
        show_default=True,
        help="Seconds for a call into a system.",
    ),
    click.option(
        "--flush-timeout",
        type=SECONDS,
        metavar="SECONDS",
        default=3600.0,
        show_default=True,
        help="Seconds for a system to make a dialogue searchable.",
    ),
    click.option(
        "--patience",
        type=SECONDS,
        metavar="SECONDS",
        default=60.0,
        show_default=True,
        help="Seconds for which a call into a system is tried again while it cannot be reached or is busy.",
    ),
)

choice_options = _grouped(
    click.option(
        "--estimate",
        is_flag=True,
        help="Print how many calls, tokens and what money the run will take, from the data's sizes, and end there.",
    ),
    click.option(
        "--sample-dialogues",
        type=ITEMS,
        metavar="N",
        help="Only N whole dialogues, each in all its languages: a seeded stratified sample.",
    ),
    click.option(
        "--sample-questions",
        type=ITEMS,
        metavar="N",
        help="Only N questions, a seeded sample stratified by what they ask for; the same in every language.",
    ),
    click.option(
        "--sample-seed",
        type=SEED,
        metavar="N",
        default=0,
        show_default=True,
        help="Seed of the sample, apart from that of the models.",
    ),
    click.option(
        "--shard",
        metavar="I/N",
        callback=_shard,
        help="Only every Nth dialogue from the Ith, into a folder of its own; `memdock-eval merge` makes one run of "
        "the N.",
    ),
)

cost_options = _grouped(
    click.option(
        "--prices",
        type=_FILE,
        help="Your price table (YAML) in place of the shipped one; its date and currency go along.",
    ),
    click.option(
        "--budget",
        type=MONEY,
        metavar="MONEY",
        help="What answerer and judge may cost, in the price table's currency. Once it is spent no call begins, and "
        "the run ends with exit code 4; the same command with a higher budget goes on.",
    ),
)

progress_option = click.option(
    "--progress",
    type=click.Choice(["shown", "json"]),
    default="shown",
    show_default=True,
    help="How far the run is, on standard error: for people, or for programs a JSON object a line.",
)
