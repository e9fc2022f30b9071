"""A plan file: the options of `memdock-eval run` in YAML, checked one by one, each error with its line."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import click
import yaml

_SECRETS = ("key", "answer-key", "judge-key")
_MANY = "k"
_KS = "memdock_evaluator.run.plan_file.ks"


class PlanFileError(click.UsageError):
    """A plan file that cannot be used; the message names file, line and field."""


def read_plan_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """A callback of `--plan`: what the file says becomes the defaults of the other options.

    Keys are the options' long names without dashes; an option that may be repeated takes a list, and so does `k`, of
    which each gets a run of its own. Words are read as on the command line, which goes before the environment, which
    goes before the file. Raises `PlanFileError`.
    """
    if path is None:
        return
    options = {_name(option): option for option in context.command.params if option is not parameter}
    defaults: dict[str, object] = {}
    for key, node in _pairs(path):
        where = f"{path}, line {key.start_mark.line + 1}: {key.value}"
        if key.value in _SECRETS:
            raise PlanFileError(f"{where}: a key does not belong into a plan: give {key.value}-file, or its variable")
        if (option := options.get(key.value)) is None or option.name is None:
            near = get_close_matches(key.value, options, n=1)
            raise PlanFileError(f"{where}: there is no such field{f'; is {near[0]} meant?' if near else ''}")
        if option.name in defaults:
            raise PlanFileError(f"{where}: it stands there twice")
        words = [_word(path, key, item) for item in node.value] if isinstance(node, yaml.SequenceNode) else None
        if words is not None and not option.multiple and key.value != _MANY:
            raise PlanFileError(f"{where}: it takes one value, not a list")
        if words == []:
            raise PlanFileError(f"{where}: the list is empty")
        given = words if words is not None else [_word(path, key, node)]
        values = [_checked(context, option, item, where) for item in ([given] if option.multiple else given)]
        if len(values) > 1:
            context.meta[_KS] = tuple(dict.fromkeys(values))
        defaults[option.name] = given if option.multiple else given[0]
    context.default_map = defaults


def ks_of(context: click.Context) -> Sequence[int]:
    """The numbers of memories of a plan that names several, one run each; empty: `k` is one, or was typed."""
    if context.get_parameter_source(_MANY) is not click.core.ParameterSource.DEFAULT_MAP:
        return ()
    found: Sequence[int] = context.meta.get(_KS, ())
    return found


def _name(option: click.Parameter) -> str:
    """The long name without dashes."""
    return max(option.opts, key=len).lstrip("-")


def _pairs(path: Path) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    try:
        tree = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise PlanFileError(f"{path}: the plan cannot be read from it") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PlanFileError(f"{path}, line {line}: it is no YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise PlanFileError(f"{path}: it is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(tree, yaml.MappingNode):
        raise PlanFileError(f"{path}: give fields and values, such as k: 10")
    for key, node in tree.value:
        if not isinstance(key, yaml.ScalarNode):
            raise PlanFileError(f"{path}, line {key.start_mark.line + 1}: a field's name is a word")
        yield key, node


def _word(path: Path, key: yaml.ScalarNode, node: yaml.Node) -> str:
    """A scalar as it is written."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        line = node.start_mark.line + 1
        raise PlanFileError(f"{path}, line {line}: {key.value}: give a value, or a list of values")
    word: str = node.value
    return word


def _checked(context: click.Context, option: click.Parameter, given: object, where: str) -> object:
    """The option's own reading of it."""
    try:
        return option.process_value(context, given)
    except click.BadParameter as error:
        raise PlanFileError(f"{where}: {error.message}") from error
