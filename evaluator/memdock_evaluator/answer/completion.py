"""A model's reply to one prompt, and what decides it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

_FORM = "memdock reply 1"
"""Changes where the same request would be read otherwise than before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A reply without a reasoning model's thoughts; `estimated` where the endpoint counted no tokens."""

    text: str
    input_tokens: int
    output_tokens: int
    estimated: bool


def key_of(url: str, body: Mapping[str, Any], use: str) -> bytes:
    """A digest of all that changes a reply: the endpoint's address, the whole request, and what the reply is for.

    `use` has the judge's form, the repeat and the try, for two tries that ask the same are to be two replies.
    """
    return hashlib.sha256(orjson.dumps([_FORM, url.rstrip("/"), body, use], option=orjson.OPT_SORT_KEYS)).digest()
