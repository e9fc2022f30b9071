"""Words of sentences: numbers, and what others have said."""


def counted(number: int, one: str, many: str = "") -> str:
    """ "1 turn", "2,016 turns"; `many` where it is not `one` with an "s"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def cut(words: str) -> str:
    """At most 200 characters of `words`, on one line."""
    line = " ".join(words.encode(errors="replace").decode().split())
    return line if len(line) <= 200 else line[:197] + "..."
