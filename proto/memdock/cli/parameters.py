"""Kinds of options: times, spans of time, labels."""

import re
from datetime import datetime, timedelta

import click
from google.protobuf.timestamp_pb2 import Timestamp

from memdock import convert
from memdock.json_values import RefusedValueError, read_time

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"(\d{1,5})([smhd])")

SPACE = click.argument("space")


def time(text: str) -> datetime:
    """An RFC 3339 time with an offset, by the protocol's own rule."""
    try:
        return convert.read_time(Timestamp(**read_time(text)))
    except RefusedValueError as refused:
        raise click.BadParameter(refused.description) from None


def span(text: str) -> timedelta:
    """A span of time: `30m`, `12h`, `90d`."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise click.BadParameter("must be a number and s, m, h or d, such as 12h")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def label(text: str) -> tuple[str, str]:
    """`name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter("must be name=value")
    return name, value
