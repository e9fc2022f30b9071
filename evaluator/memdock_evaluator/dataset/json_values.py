"""The values of a JSON file of any size, one after another: an array's elements, lines, or values that span lines.

The stream is cut where brackets close, and each piece is parsed alone.
"""

import io
import re
from collections.abc import Iterator
from typing import Any

import orjson

MOST_LEVELS = 64
"""Brackets inside each other in a value: formats need eight, and whoever walks a value must not run out of stack."""

MOST_BYTES = 256 << 20
"""Of a value, which is held in memory whole. A row of RUMBA's has about 1 MiB."""

_CHUNK_BYTES = 1 << 20
# Without possessive groups: early releases of Python 3.11 leave what such a group had begun, and not finished, matched.
_PLAIN = re.compile(rb'[^"\[\]{}]*(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"[^"\[\]{}]*)*', re.DOTALL)
"""Up to the next bracket, or to a string whose end is not there."""
_STRING = re.compile(rb'[^"\\\n]*(?:\\.[^"\\\n]*)*', re.DOTALL)
_HALF_PAIR = re.compile(rb"(\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\[^u])|\\u[dD][89a-fA-F]..", re.DOTALL)
_QUOTE, _BACKSLASH, _OPEN = ord('"'), ord("\\"), b"[{"

DAMAGED = "the file is damaged or incomplete: put it right, or fetch it again"
_UNLIKE = "no known format has such records"


class JsonError(ValueError):
    """A value that cannot be read; the message says why, `remedy` what to do."""

    def __init__(self, problem: str, remedy: str = DAMAGED) -> None:
        self.remedy = remedy
        super().__init__(problem)


def read_values(file: io.BufferedReader, *, array: bool) -> Iterator[Any]:
    """Yield the elements of the `array` that the file is, or the values that it holds in a row; raises `JsonError`."""
    before, after = (b"[", b"[]") if array else (b"", b"")
    for piece, whole in _pieces(file, brackets=int(array)):
        text = piece.strip()
        if not (text.startswith(before) if whole else b"".join(text.split()) == after):
            raise JsonError("something else than an object stands here")
        if whole:
            yield parse(text[len(before) :])
            before, after = (b",", b"]") if array else (b"", b"")


def parse(text: bytes | bytearray) -> Any:
    """The value that `text` is; half of a surrogate pair, which stands for no character, becomes U+FFFD."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        mended = _HALF_PAIR.sub(lambda match: match[1] or rb"\ufffd", text)
        if mended == text:
            raise JsonError(f"cannot be read on ({error})") from error
        return parse(mended)


def _pieces(file: io.BufferedReader, *, brackets: int) -> Iterator[tuple[bytearray, bool]]:
    """Pieces that each end with a value inside so many `brackets`; last, with False, what stands behind them all."""
    piece, at, level, in_string = bytearray(), 0, 0, False
    while chunk := file.read(_CHUNK_BYTES):
        piece += chunk
        while True:
            at = _end(_STRING if in_string else _PLAIN, piece, at)
            if at == len(piece) or (in_string and piece[at] == _BACKSLASH):
                break
            mark, at = piece[at], at + 1
            if in_string and mark != _QUOTE:
                raise JsonError("cannot be read on (a string does not end on its line)")
            if mark == _QUOTE:
                in_string = not in_string
            elif mark in _OPEN:
                level += 1
                if level > brackets + MOST_LEVELS:
                    raise JsonError(f"has more than {MOST_LEVELS} brackets inside each other", _UNLIKE)
            else:
                level -= 1
                if level == brackets:
                    yield piece[:at], True
                    del piece[:at]
                    at = 0
                elif level < brackets:
                    yield piece + file.read(_CHUNK_BYTES), False
                    return
        if len(piece) > MOST_BYTES:
            raise JsonError(f"is longer than {MOST_BYTES >> 20} MiB", _UNLIKE)
    if level or in_string:
        raise JsonError("cannot be read on (the file ends inside it)")
    yield piece, False


def _end(pattern: re.Pattern[bytes], piece: bytearray, at: int) -> int:
    """Where a pattern that may match nothing ends."""
    match = pattern.match(piece, at)
    return match.end() if match else at
