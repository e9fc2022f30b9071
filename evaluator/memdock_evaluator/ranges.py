"""The ranges of the command line's numbers: every one has an upper end, so that no number is too large to be kept."""

from math import isnan
from typing import Any

import click

MAX_SEED = 2**63 - 1
"""What endpoints and files hold of a seed; what is added for repeats and tries still fits 64 bits."""
MAX_K = MAX_REPEATS = MAX_AT_ONCE = 1_000
MAX_TRIES = 100
MAX_ITEMS = 1_000_000_000
"""Of dialogues, questions, answers, tokens: more than any data holds."""
WEEK_S = 7 * 24 * 3600.0
MAX_MONEY = 1e12


class Number(click.FloatRange):
    """A number of a range; "nan", which no comparison holds for, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A float."""
        number = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is no number", param, ctx) if isnan(number) else number


SEED = click.IntRange(min=0, max=MAX_SEED)
K = click.IntRange(min=1, max=MAX_K)
REPEATS = click.IntRange(min=1, max=MAX_REPEATS)
AT_ONCE = click.IntRange(min=1, max=MAX_AT_ONCE)
TRIES = click.IntRange(min=1, max=MAX_TRIES)
ITEMS = click.IntRange(min=1, max=MAX_ITEMS)
TEMPERATURE = Number(min=0, max=2)
PERCENT = Number(min=0, max=100)
SECONDS = Number(min=0, max=WEEK_S)
SOME_SECONDS = Number(min=0, min_open=True, max=WEEK_S)
MONEY = Number(min=0, min_open=True, max=MAX_MONEY)
