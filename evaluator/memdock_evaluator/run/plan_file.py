"""A plan file: the options of `memdock-eval run` in YAML, checked one by one, each error with its line."""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import click
import yaml

STANDARD_INPUT = Path("-")
_SECRETS = ("key", "answer-key", "judge-key")
_PLACES = "memdock_evaluator.run.plan_file.places"
"""In a context's `meta`: option -> its parameter's name and the place of its field."""


class PlanFileError(click.UsageError):
    """A plan that cannot be used. The message names file, line and field; `field` and `what` are parts of it."""

    def __init__(self, place: str, what: str, *, line: int | None = None, field: str = "") -> None:
        at = place if line is None else f"{place}, line {line}"
        super().__init__(f"{at}: {field}: {what}" if field else f"{at}: {what}")
        self.field, self.what = field, what


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanField:
    """A field as it is written: `words` of a list, or one word where `is_list` is not set.

    `line` is that of its name, `lines` are those of the words; they count from 1.
    """

    name: str
    line: int
    words: tuple[str, ...]
    lines: tuple[int, ...]
    is_list: bool


def read_plan_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """A callback of `--plan`: what the file says becomes the defaults of the other options.

    Keys are the options' long names without dashes; an option that may be repeated takes a list. Words are read as on
    the command line, which goes before the environment, which goes before the file. Raises `PlanFileError`.
    """
    if path is None:
        return
    place = "standard input" if path == STANDARD_INPUT else str(path)
    try:
        content = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise PlanFileError(place, "the plan cannot be read from it") from error
    take_plan(context, plan_fields(text, place), place, leave_out=parameter.name)


def take_plan(context: click.Context, fields: Iterable[PlanField], place: str, *, leave_out: str | None = None) -> None:
    """Makes the fields the defaults of the options of `context`'s command, all but the option that `leave_out` names.

    `place` is how errors call the plan. Raises `PlanFileError`.
    """
    options = {_name(option): option for option in context.command.params if option.name != leave_out}
    defaults: dict[str, object] = {}
    for field in fields:

        def refused(what: str, at: PlanField = field, line: int | None = None) -> PlanFileError:
            return PlanFileError(place, what, line=line or at.line, field=at.name)

        if field.name in _SECRETS:
            raise refused(f"a key does not belong into a plan: give {field.name}-file, or its variable")
        if (option := options.get(field.name)) is None or option.name is None:
            near = get_close_matches(field.name, options, n=1)
            raise refused(f"there is no such field{f'; is {near[0]} meant?' if near else ''}")
        if option.name in defaults:
            raise refused("it stands there twice")
        if field.is_list and not option.multiple:
            raise refused("it takes one value, not a list")
        if not field.words:
            raise refused("the list is empty")
        value = list(field.words) if option.multiple else field.words[0]
        try:
            option.process_value(context, value)
        except click.BadParameter as error:
            raise refused(error.message, line=_line(context, option, field)) from error
        defaults[option.name] = value
        context.meta.setdefault(_PLACES, {})[option.opts[0]] = option.name, f"{place}, line {field.line}"
    context.default_map = defaults


def located(context: click.Context, error: click.UsageError) -> click.UsageError:
    """The error behind the plan's line of the option that it names, where that came from a plan."""
    places: Mapping[str, tuple[str, str]] = context.meta.get(_PLACES, {})
    for option in re.findall(r"--[a-z][a-z-]*", error.message):
        name, place = places.get(option, ("", ""))
        if place and context.get_parameter_source(name) is click.core.ParameterSource.DEFAULT_MAP:
            return click.UsageError(f"{place}: {error.message}", error.ctx)
    return error


def _line(context: click.Context, option: click.Parameter, field: PlanField) -> int:
    """That of the first word which is wrong by itself; else the words are wrong together."""
    for word, line in zip(field.words, field.lines, strict=True):
        try:
            option.process_value(context, [word] if option.multiple else word)
        except click.BadParameter:
            return line
    return field.line


def _name(option: click.Parameter) -> str:
    """The long name without dashes."""
    return max(option.opts, key=len).lstrip("-")


def plan_fields(text: str, place: str) -> list[PlanField]:
    """The fields of a plan in YAML, or in JSON, which is YAML too; raises `PlanFileError`."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PlanFileError(place, f"it is no YAML: {error.problem}", line=line) from error
    except yaml.YAMLError as error:
        raise PlanFileError(place, f"it is no YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise PlanFileError(place, "its brackets stand too deep in each other") from error
    if not isinstance(tree, yaml.MappingNode):
        raise PlanFileError(place, "give fields and values, such as k: 10")
    return [_field(place, key, node) for key, node in tree.value]


def _field(place: str, key: yaml.Node, node: yaml.Node) -> PlanField:
    line = key.start_mark.line + 1
    if not isinstance(key, yaml.ScalarNode):
        raise PlanFileError(place, "a field's name is a word", line=line)
    name: str = key.value
    is_list = isinstance(node, yaml.SequenceNode)
    items = node.value if is_list else [node]
    words = tuple(_word(place, name, item) for item in items)
    lines = tuple(item.start_mark.line + 1 for item in items)
    return PlanField(name=name, line=line, words=words, lines=lines, is_list=is_list)


def _word(place: str, name: str, node: yaml.Node) -> str:
    """A scalar as it is written."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        line = node.start_mark.line + 1
        raise PlanFileError(place, "give a value, or a list of values", line=line, field=name)
    word: str = node.value
    return word
