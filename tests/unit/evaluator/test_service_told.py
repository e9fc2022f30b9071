"""What a tenant is told of a process that ended: the command's own sentences, and never a trace."""

import pytest

from memdock_evaluator.service.carrier import Told

TRACE = """Traceback (most recent call last):
  File "/srv/app/run/rows.py", line 12, in write
    line_of(row)
TypeError: My cat is called Bublik
"""


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("Error: it cannot be\n", ("it cannot be",)),
        ("Usage: run\nTry 'run --help'\n\nError: --k: it differs in\n  seed\n", ("--k: it differs in", "  seed")),
        ("warning: a library's\nError: it cannot be\n" + TRACE, ("it cannot be",)),
        (TRACE, ()),
        ("malloc(): corrupted\n", ()),
        ("", ()),
    ],
)
def test_only_the_commands_own_words_are_told(written: str, told: tuple[str, ...]) -> None:
    found = Told(plain=str)
    for line in written.splitlines(keepends=True):
        found.take(line.encode())
    assert found.sentences() == told
    assert found.frames() == (["/srv/app/run/rows.py:12 write"] if TRACE in written else [])
