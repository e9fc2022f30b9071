"""What an error of an endpoint says, and how long it asks to wait."""

import time
from email.utils import formatdate

import pytest

from memdock_evaluator.answer.refusals import read_refusal, retry_after_s


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "inf", "retry-after": "7"}, 7.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "7"}, 7.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


def test_a_date_is_the_seconds_until_then() -> None:
    assert retry_after_s({"retry-after": formatdate(time.time() + 90, usegmt=True)}) == pytest.approx(90, abs=5)


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b'{"error": {"message": "no\\nsuch", "code": "c"}}', "c", "no such"),
        (b'{"message": "flat", "code": 7}', "", "flat"),
        (b'{"error": "bare"}', "", "bare"),
        (b'{"detail": "x"}', "", '{"detail": "x"}'),
        (b"[1]", "", "[1]"),
        (b"<html>busy</html>", "", "<html>busy</html>"),
        (b"", "", "without a word"),
        (b"\xff" * 500, "", "?" * 197 + "..."),
        (b"[" * 100_000, "", "[" * 197 + "..."),
    ],
)
def test_errors_are_read_whatever_their_shape(content: bytes, code: str, said: str) -> None:
    found = read_refusal(500, content)
    assert (found.code, found.said.replace("\ufffd", "?")) == (code, said)
