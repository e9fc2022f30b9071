"""Words of sentences: numbers, and what others have said."""

from decimal import ROUND_HALF_UP, Decimal, localcontext


def half_up(value: float, spec: str) -> str:
    """A number in a format of Python's that names its digits (",.1f", ".0%"); a half goes up: 12.5 is 13.

    What is told apart are twelve digits, so that the noise of a binary 28.499999999999996 is no less than a half.
    """
    with localcontext(rounding=ROUND_HALF_UP):
        return format(Decimal(f"{value:.12g}"), spec)


def counted(number: int, one: str, many: str = "") -> str:
    """ "1 turn", "2,016 turns"; `many` where it is not `one` with an "s"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def cut(words: str) -> str:
    """At most 200 characters of `words`, on one line."""
    line = " ".join(words.encode(errors="replace").decode().split())
    return line if len(line) <= 200 else line[:197] + "..."
