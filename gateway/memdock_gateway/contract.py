"""The comments of the .proto, which are the specification, by the full name of what they stand above."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

_OPENS = re.compile(r"(?:message|enum|service) (\w+) \{")
_MEMBER = re.compile(r"(?:rpc (\w+)\(|(?:[\w.<>, ]+ )?(\w+) = \d+;)")


@cache
def comments() -> dict[str, str]:
    """`memdock.v1.Turn.text` -> its comment in one line; what has none is left out."""
    text = files("memdock.v1").joinpath("memory.proto").read_text("utf-8")
    return {name: comment for name, comment in _read(text.splitlines()) if comment}


def _read(lines: list[str]) -> Iterator[tuple[str, str]]:
    package, inside, comment = "", "", []
    for line in (line.strip() for line in lines):
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        if line.startswith("package "):
            package = line.removeprefix("package ").rstrip(";")
        elif opened := _OPENS.match(line):
            inside = f"{package}.{opened[1]}"
            yield inside, " ".join(comment)
        elif member := _MEMBER.match(line):
            yield f"{inside}.{member[1] or member[2]}", " ".join(comment)
        comment = []
