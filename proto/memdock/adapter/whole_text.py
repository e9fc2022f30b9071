"""Answers of models and services whose texts are whole: no half of a surrogate pair, and no NUL.

JSON may hold both, and no store and no answer of ours can: a framework that keeps one can break every later search of
its space. Each is replaced by U+FFFD as the answer comes in, before a framework sees it.
"""

import json
import re
from typing import Any

_HALF = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SUSPECT = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
_BROKEN = re.compile("[\ud800-\udfff\0]")
_ESCAPE = re.compile(rf"{_HALF[0]}{_HALF[1]}|({_HALF[0]}|{_HALF[1]}|\\u0000)|\\.", re.DOTALL)
_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")


def with_whole_texts(library: Any, response: Any) -> Any:
    """The response of `library` (httpx or its successor), read whole, or one in its place."""
    if _SUSPECT.search(response.content) is None:
        return response
    try:
        value = json.loads(response.content)
    except (ValueError, RecursionError):
        return response
    whole = _whole(value)
    if whole == value:
        return response
    headers = [each for each in response.headers.multi_items() if each[0].lower() not in _OF_THE_BODY]
    content = json.dumps(whole).encode()
    return library.Response(response.status_code, headers=headers, content=content, request=response.request)


def whole_text(text: str) -> str:
    """The text; in JSON that it holds, which is a text in a text, also what is written as an escape."""
    text = _BROKEN.sub("\ufffd", text)
    return _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], text) if "\\" in text else text


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {whole_text(name): _whole(each) for name, each in value.items()}
    return value
