"""The small parts that formats are described with: a text, a role, a list of numbers, each read with good will."""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from memdock_evaluator.dataset.json_values import parse


class Shape(BaseModel):
    """What a format promises of a part of a record; keys that it does not name are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def _as_text(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _as_texts(value: object) -> object:
    return tuple(map(_as_text, value)) if isinstance(value, list | tuple) else (_as_text(value),)


def _as_label(value: object) -> object:
    return "" if value is None else _as_text(value)


def _as_joined(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else _as_label(value)


def _as_list(value: object) -> object:
    return () if value is None else value


def _as_numbers(value: object) -> object:
    return re.findall(r"\d+", value) if isinstance(value, str) else _as_list(value)


def _as_parsed(value: object) -> object:
    written = value.encode() if isinstance(value, str) else value
    return parse(written) if isinstance(written, bytes) else value


_ROLES = {"human": "user", "bot": "assistant", "ai": "assistant", "model": "assistant"}


def _as_role(value: object) -> object:
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    return _ROLES.get(word, word)


Filled = Annotated[str, BeforeValidator(_as_text), StringConstraints(pattern=r"\S")]
"""A string that is not blank; a number is read as its digits."""

Texts = Annotated[tuple[Filled, ...], BeforeValidator(_as_texts), Field(min_length=1)]
"""One string or several, none blank."""

Label = Annotated[str, BeforeValidator(_as_label), StringConstraints(strip_whitespace=True)]
"""A string that may be empty, missing or null (then "")."""

TurnId = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,128}$")]
"""A turn's id: 1-128 printable ASCII characters without a space, as the protocol wants it."""

Joined = Annotated[str, BeforeValidator(_as_joined)]
"""A string, or several that belong together as one with commas between."""

Numbers = Annotated[tuple[int, ...], BeforeValidator(_as_numbers)]
"""Whole numbers in a list or in one string ("[1, 3]"); null is none."""

Labels = Annotated[tuple[Label, ...], BeforeValidator(_as_list)]
"""Strings; null is none."""

Role = Annotated[Literal["user", "assistant", "system", "tool"], BeforeValidator(_as_role)]
"""A role in any case; "human" is the user, and "bot", "ai" and "model" are the assistant."""

Parsed = BeforeValidator(_as_parsed)
"""For a nested part that some tables hold as a string of JSON."""
