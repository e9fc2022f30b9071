"""Texts of answers: what no store can hold is replaced, and nothing else is touched."""

import gzip
import json
from typing import Any

import httpx2 as httpx
import pytest

from memdock.adapter.whole_text import whole_text, with_whole_texts

REQUEST = httpx.Request("POST", "http://models/v1/chat/completions")


def answer(content: bytes) -> httpx.Response:
    return httpx.Response(200, headers={"x-kept": "yes"}, content=content, request=REQUEST)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("a\udc00\0b", "a\ufffd\ufffdb"),
        ("plain \N{GRINNING FACE} text\n", None),
        (json.dumps({"a": "\N{GRINNING FACE} \\ud800 \n"}), None),  # a whole pair, and a backslash that is one
        (json.dumps({"a": "x\ud83d"}), json.dumps({"a": "x\ufffd"})),
        (json.dumps({"a": "\ude00x\0"}), json.dumps({"a": "\ufffdx\ufffd"})),
        (json.dumps({"a": "\\\ud83d"}), json.dumps({"a": "\\\ufffd"})),
        (json.dumps({"a": "\ud83d\N{GRINNING FACE}"}), json.dumps({"a": "\ufffd\N{GRINNING FACE}"})),
        ("ends in \\", None),
    ],
)
def test_what_is_half_is_replaced_also_in_json_that_a_text_holds(text: str, whole: str | None) -> None:
    assert whole_text(text) == (text if whole is None else whole)


@pytest.mark.parametrize(
    "nested", [lambda text: text, lambda text: [{"b": text}], lambda text: json.dumps({"c": text})]
)
def test_an_answer_is_mended_and_keeps_its_headers_and_its_request(nested: Any) -> None:
    before = {"choices": [{"message": {"content": nested("a\ud800")}}], "n": [1, None, 0.5], "k\0": True}
    mended = with_whole_texts(httpx, answer(json.dumps(before).encode()))
    content = {"choices": [{"message": {"content": nested("a\ufffd")}}], "n": [1, None, 0.5], "k\ufffd": True}
    assert mended.json() == content
    assert (mended.headers["x-kept"], mended.request, mended.status_code) == ("yes", REQUEST, 200)
    assert int(mended.headers["content-length"]) == len(mended.content)


@pytest.mark.parametrize(
    "content",
    [b"", b"no JSON \\ud800", b"[" * 100_000 + b"\\ud800", b"\xed\xa0\x80 \\u0000", json.dumps("\N{CAT}").encode()],
    ids=["empty", "no JSON", "deep", "no UTF-8", "a pair"],
)
def test_any_other_answer_is_the_one_that_came(content: bytes) -> None:
    came = answer(content)
    assert with_whole_texts(httpx, came) is came


def test_a_packed_answer_is_mended_as_it_was_unpacked() -> None:
    packed = httpx.Response(
        200, headers={"content-encoding": "gzip"}, content=gzip.compress(b'{"a": "\\ud800"}'), request=REQUEST
    )
    assert with_whole_texts(httpx, packed).json() == {"a": "\ufffd"}
