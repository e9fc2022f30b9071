"""Responders for a vendor's own prompts, as data: which prompts they know, and what the model says to them.

[[responder]]
prompt = 'Extract facts from:\\s*(?P<said>.+)'    # a regular expression, looked for in all messages together
answer = '{"facts": ["{said}"]}'                   # groups by their names in braces, escaped as JSON strings are
nothing = '{"facts": []}'                          # what is said where nothing is worth remembering
plain = false                                      # true: groups go in as they are
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdock.conformance.models import Responder, echo

_FIELDS = {"prompt": str, "answer": str, "nothing": str, "plain": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One responder of the file."""

    prompt: re.Pattern[str]
    answer: str
    nothing: str = ""
    plain: bool = False

    def said(self, found: re.Match[str]) -> str:
        """The answer with the groups in it."""
        text = self.answer
        for name, value in found.groupdict(default="").items():
            text = text.replace(f"{{{name}}}", value if self.plain else json.dumps(value, ensure_ascii=False)[1:-1])
        return text


def responder_of(rules: Sequence[Rule]) -> Responder:
    """The first rule that knows the prompt answers; a prompt that none knows is said back."""

    def respond(body: Mapping[str, Any], nothing: bool) -> str:
        prompt = "\n".join(_said(message) for message in body["messages"])
        for rule in rules:
            if found := rule.prompt.search(prompt):
                return rule.nothing if nothing else rule.said(found)
        return echo(body, nothing)

    return respond


def read_responders(path: Path) -> Responder:
    """Reads a file of responders. Raises `ValueError` that names the file and the entry."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise ValueError(f"{path}: {problem}") from None
    entries = document.pop("responder", None)
    if not isinstance(entries, list) or not entries or document:
        raise ValueError(f"{path}: must hold tables [[responder]] and nothing else")
    return responder_of([_rule(path, number, entry) for number, entry in enumerate(entries, 1)])


def _rule(path: Path, number: int, entry: Mapping[str, Any]) -> Rule:
    where = f"{path}: responder {number}"
    for name, value in entry.items():
        if name not in _FIELDS:
            raise ValueError(f"{where}: {name} is not known; known are {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[name]):
            raise ValueError(f"{where}: {name} must be {_FIELDS[name].__name__}")
    for name in ("prompt", "answer"):
        if name not in entry:
            raise ValueError(f"{where}: {name} is missing")
    try:
        prompt = re.compile(entry["prompt"], re.DOTALL)
    except re.error as problem:
        raise ValueError(f"{where}: prompt is no regular expression: {problem}") from None
    return Rule(
        prompt=prompt, answer=entry["answer"], nothing=entry.get("nothing", ""), plain=entry.get("plain", False)
    )


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content or ())
