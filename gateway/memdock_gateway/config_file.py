"""Reads the configuration from a YAML file and tells every mistake in it, in our words, by file, line and field.

`gateway.yaml:12: systems[0].deadline: is not known here; did you mean deadline_s?`, all mistakes at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from inspect import isclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from memdock_gateway.config import Config, ConfigError, Location, Section, field_name

# By pydantic's names of errors; in braces what it tells beside them.
_SENTENCES = {
    "missing": "is missing; give it a value",
    "string_type": "must be text; put it in quotes",
    "path_type": "must be the name of a file",
    "model_type": "must be a mapping of fields to values",
    "dict_type": "must be a mapping of names to values",
    "tuple_type": "must be a list, with a - before each entry",
    "int_type": "must be a whole number, without quotes",
    "float_type": "must be a number, without quotes",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:.15g}",
    "less_than_equal": "must be at most {le:.15g}",
    "invalid_key": "must be text; put it in quotes",
    "config": "{sentence}",
}
_OTHER = "cannot be used as it is"
_MERGE = "tag:yaml.org,2002:merge"  # of `<<`, which is no value
# What PyYAML raises for a value that has not the form of its tag: a day that does not exist, `!!int x`.
_BAD_VALUE = (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError)


class ConfigFile:
    """A YAML file, and where in it things stand. Raises `ConfigError` when it is none, or no mapping."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = self._read()
        self._reader = yaml.SafeLoader("")
        self._root = self._compose(text)
        if not isinstance(self._root, yaml.MappingNode):
            raise self._error(1, "must be a mapping of fields to values; it needs at least `systems:`")
        if mistakes := [self._error(*one) for node in _nodes(self._root, set()) for one in self._mistakes_in(node)]:
            raise ConfigError("\n".join(map(str, mistakes)))
        self.content: dict[Any, Any] = yaml.safe_load(text)

    def mistake(self, location: Location, sentence: str) -> str:
        """The sentence with its file, line and field."""
        field = field_name(location)
        return f"{self.path}:{self.line(location)}: {f'{field}: ' if field else ''}{sentence}"

    def line(self, location: Location) -> int:
        """Of the deepest part of `location` that stands in the file, from 1."""
        node, line = self._root, _line_of(self._root)
        for part in location:
            if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = _line_of(node)
            elif isinstance(node, yaml.MappingNode):
                # What is not there itself may have come with `<<`.
                entry = next(
                    (pair for name in (str(part), "<<") for pair in node.value if self._is(name, pair[0])), None
                )
                if entry is None:
                    break
                line, node = _line_of(entry[0]), entry[1]
            else:
                break
        return line

    def _read(self) -> str:
        try:
            return self.path.read_text("utf-8")
        except UnicodeDecodeError as problem:
            line = self.path.read_bytes().count(b"\n", 0, problem.start) + 1
            raise self._error(line, "is not UTF-8 text; save it as such") from None
        except OSError as problem:
            raise ConfigError(f"{self.path}: cannot be read: {problem.strerror}") from None

    def _compose(self, text: str) -> Any:
        try:
            return yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as problem:
            mark = problem.problem_mark or problem.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            raise self._error(line, f"is not YAML; look at column {column}, and at the line before") from None
        except yaml.reader.ReaderError as problem:
            line = text.count("\n", 0, problem.position) + 1
            raise self._error(line, "holds a character that YAML does not allow; remove it") from None

    def _mistakes_in(self, node: Any) -> Iterator[tuple[int, str]]:
        """Line and sentence of what YAML would only say in its own words, or, of a name given twice, not at all."""
        if isinstance(node, yaml.ScalarNode):
            try:
                self._value(node)
            except _BAD_VALUE:
                yield _line_of(node), "has a value that YAML cannot read; put it in quotes"
        names: set[tuple[str, Any]] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key, yaml.ScalarNode):
                yield _line_of(key), "has a list or a mapping where a name must be"
            elif (key.tag, key.value) in names:
                yield _line_of(key), f"{key.value} is given twice; keep one"
            else:
                names.add((key.tag, key.value))

    def _is(self, name: str, key: Any) -> bool:
        return str(self._value(key)) == name

    def _value(self, node: Any) -> Any:
        return node.value if node.tag == _MERGE else self._reader.construct_object(node, deep=True)

    def _error(self, line: int, sentence: str) -> ConfigError:
        return ConfigError(f"{self.path}:{line}: {sentence}")


def _line_of(node: Any) -> int:
    return int(node.start_mark.line) + 1


def load_config(path: Path) -> Config:
    """The validated configuration; `ConfigError` lists every mistake with its line."""
    file = ConfigFile(path)
    try:
        config = Config.model_validate(file.content, context={"folder": path.parent})
    except ValidationError as problem:
        mistakes = sorted(_mistakes(problem), key=lambda one: file.line(one[0]))
        raise ConfigError("\n".join(file.mistake(*one) for one in mistakes)) from None
    config.come_from(file)
    return config


def config_of(systems: Iterable[tuple[str, str]], listen: Mapping[str, str]) -> Config:
    """A configuration without a file: systems by name and address, and where the faces listen. Raises `ConfigError`."""
    content = {"listen": listen, "systems": [{"name": name, "address": address} for name, address in systems]}
    try:
        return Config.model_validate(content)
    except ValidationError as problem:
        raise ConfigError("\n".join(f"{field_name(at)}: {sentence}" for at, sentence in _mistakes(problem))) from None


def _mistakes(problem: ValidationError) -> Iterator[tuple[Location, str]]:
    for one in problem.errors(include_url=False, include_input=False):
        location: Location = one["loc"]
        told = one.get("ctx", {})
        if one["type"] == "extra_forbidden":
            yield location, _not_known(location)
        elif location[-1:] == ("[key]",):
            yield location[:-1], f"as a name, {_SENTENCES.get(one['type'], _OTHER).format(**told)}"
        else:
            yield (*location, *told.get("place", ())), _SENTENCES.get(one["type"], _OTHER).format(**told)


def _not_known(location: Location) -> str:
    known = list(_section_at(location[:-1]).model_fields)
    near = get_close_matches(str(location[-1]), known, n=2)
    return (
        f"is not known here; did you mean {' or '.join(near)}?"
        if near
        else f"is not known here; known are {', '.join(known)}"
    )


def _section_at(location: Location) -> type[Section]:
    section: type[Section] = Config
    for part in location:
        if isinstance(part, str):
            kind = section.model_fields[part].annotation
            section = next(one for one in (kind, *get_args(kind)) if isclass(one) and issubclass(one, Section))
    return section


def _nodes(node: Any, seen: set[int]) -> Iterator[Any]:
    """The node and all below it, each once: an alias may lead back."""
    if not isinstance(node, yaml.Node) or id(node) in seen:
        return
    seen.add(id(node))
    yield node
    for part in node.value if isinstance(node, yaml.CollectionNode) else ():
        for one in part if isinstance(part, tuple) else (part,):
            yield from _nodes(one, seen)
