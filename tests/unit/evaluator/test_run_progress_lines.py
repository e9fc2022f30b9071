"""How far a run is, as lines for programs."""

import io

import orjson

from memdock_evaluator.run.progress import Work
from memdock_evaluator.run.progress_lines import ProgressLines


def test_counts_are_told_at_most_once_a_second_and_at_the_end_and_sentences_at_once() -> None:
    now = [0.0]
    file = io.StringIO()
    with ProgressLines(file, lambda: now[0]) as progress:
        progress.expect(Work.ACCEPTED, 0)
        progress.expect(Work.ANSWERS, 3)
        progress.advance(Work.ACCEPTED)
        progress.advance(Work.ANSWERS)
        now[0] = 0.9
        progress.advance(Work.ANSWERS)
        progress.say("жду\n")
        now[0] = 1.0
        progress.advance(Work.ANSWERS)
    assert [orjson.loads(line) for line in file.getvalue().splitlines()] == [
        {"done": {"questions answered": [1, 3]}},
        {"said": "жду\n"},
        {"done": {"questions answered": [3, 3]}},
        {"done": {"questions answered": [3, 3]}},
    ]
