"""Responders for a vendor's own prompts, as data: which prompts they know, and what the model says to them.

[[responder]]
prompt = 'New messages:\\n(?P<messages>.*)'       # a regular expression: see the README
each = '^\\w+: (?P<said>.+)$'                     # looked for again and again in what `prompt` has found
item = '{"id": "{index}", "text": "{said}"}'       # one for each; groups are escaped as JSON strings are
answer = '{"facts": [{items}]}'                    # the items, with commas between them; or groups of `prompt`
nothing = '{"facts": []}'                          # where nothing is worth remembering
plain = false                                      # true: groups go in as they are
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdock.conformance.models import Responder, echo, holds_any, text_of

_FIELDS = {"prompt": str, "each": str, "item": str, "answer": str, "nothing": str, "plain": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One responder of the file. `each` is `None` where the prompt is one matter as a whole."""

    prompt: re.Pattern[str]
    answer: str
    each: re.Pattern[str] | None = None
    item: str = ""
    nothing: str = ""
    plain: bool = False

    def said(self, found: re.Match[str], worthless: Sequence[str]) -> str:
        """The answer to a prompt that fits; what holds one of the `worthless` words is left out."""
        if self.each is None:
            return self.nothing if holds_any(found.string, worthless) else self._filled(self.answer, found)
        matters = [one for one in self.each.finditer(found[0]) if not holds_any(one[0], worthless)]
        if not matters:
            return self.nothing
        items = [self._filled(self.item, one).replace("{index}", str(index)) for index, one in enumerate(matters)]
        return self._filled(self.answer, found).replace("{items}", ", ".join(items))

    def _filled(self, text: str, found: re.Match[str]) -> str:
        for name, value in found.groupdict(default="").items():
            text = text.replace(f"{{{name}}}", value if self.plain else json.dumps(value, ensure_ascii=False)[1:-1])
        return text


def responder_of(rules: Sequence[Rule]) -> Responder:
    """The first rule that knows the last message, or else all of them, answers; else the last message is said back."""

    def respond(body: Mapping[str, Any], worthless: Sequence[str]) -> str:
        messages = [text_of(message) for message in body["messages"]]
        for prompt in (messages[-1], "\n".join(messages)):
            for rule in rules:
                if found := rule.prompt.search(prompt):
                    return rule.said(found, worthless)
        return echo(body, worthless)

    return respond


def read_responders(path: Path) -> Responder:
    """Reads a file of responders. Raises `ValueError` that names the file and the entry."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ValueError(f"{path} cannot be read: {problem.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise ValueError(f"{path}: {problem}") from None
    entries = document.pop("responder", None)
    if not isinstance(entries, list) or not entries or document:
        raise ValueError(f"{path}: must hold tables [[responder]] and nothing else")
    return responder_of([_rule(f"{path}: responder {number}", entry) for number, entry in enumerate(entries, 1)])


def _rule(where: str, entry: Mapping[str, Any]) -> Rule:
    for name, value in entry.items():
        if name not in _FIELDS:
            raise ValueError(f"{where}: {name} is not known; known are {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[name]):
            raise ValueError(f"{where}: {name} must be {_FIELDS[name].__name__}")
    for name in ("prompt", "answer", *(("item",) if "each" in entry else ())):
        if name not in entry:
            raise ValueError(f"{where}: {name} is missing")
    return Rule(
        prompt=_pattern(where, "prompt", entry["prompt"], re.DOTALL),
        each=_pattern(where, "each", entry["each"], re.MULTILINE) if "each" in entry else None,
        **{name: entry[name] for name in ("item", "answer", "nothing", "plain") if name in entry},
    )


def _pattern(where: str, name: str, text: str, flags: re.RegexFlag) -> re.Pattern[str]:
    try:
        return re.compile(text, flags)
    except re.error as problem:
        raise ValueError(f"{where}: {name} is no regular expression: {problem}") from None
