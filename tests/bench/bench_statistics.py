"""All statistics of a benchmark of RUMBA's size: seconds, memory, and how much slower a plain loop would be.

`python -m bench.bench_statistics [RESAMPLES]`, with `tests` on the path. 13 systems x 1,543 questions x 2 languages,
every slice, every comparison of the paper, a profile of each system, all pairs in all slices, 10,000 resamples.
Exit code 1 when a cap is broken; the processor's own seconds tell whether the machine was busy with something else.
"""

import random
import resource
import sys
import time
from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np
import orjson

from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.statistics.analysis import RESAMPLES, analyse
from memdock_evaluator.statistics.arrays import Ints
from memdock_evaluator.statistics.matrix import Measure, ScoreMatrix
from memdock_evaluator.statistics.plan import AnalysisPlan, Family, MatchedAnswerer, paper_plan
from memdock_evaluator.statistics.slices import slices_of

SYSTEMS, DIALOGUES, QUESTIONS = 13, 85, 1543
SECONDS, MEGABYTES = 5, 500
LOOP_RESAMPLES = 20


def a_matrix() -> ScoreMatrix:
    """Scores at random, every hundredth missing, over slices of about the real sizes."""
    rng = np.random.default_rng(1)
    axes = [
        taxonomy.axes(
            taxonomy.Category(
                semantic=kind,
                scope="single" if rng.random() < 0.61 else "multi",
                temporality="temporal" if rng.random() < 0.27 else "atemporal",
            ),
            expression=str(rng.choice(taxonomy.EXPRESSIONS)),
        )
        for kind in islice(cycle(taxonomy.TYPES), QUESTIONS)
    ]
    slices, members = slices_of(axes, [float(position) for position in rng.random(QUESTIONS)])
    shape = SYSTEMS, 2, QUESTIONS
    right = rng.random(shape) < rng.uniform(0.4, 0.8, size=(SYSTEMS, 2, 1))
    return ScoreMatrix(
        systems=tuple(f"system {number:02}" for number in range(SYSTEMS)),
        languages=("en", "ru"),
        dialogues=tuple(f"{number:02}" for number in range(DIALOGUES)),
        dialogue_of=np.arange(QUESTIONS) * DIALOGUES // QUESTIONS,
        asked=np.ones((2, QUESTIONS), dtype=np.bool_),
        slices=slices,
        members=members,
        accuracy=Measure.right_or_wrong(right.astype(np.int64), rng.random(shape) < 0.99),
        f1=Measure.shares(rng.random(shape)),
    )


def a_plan(matrix: ScoreMatrix) -> AnalysisPlan:
    """Every comparison there is."""
    families = (
        Family(name="full context", systems=matrix.systems[:7]),
        Family(name="agent/rag", systems=matrix.systems[7:]),
    )
    matched = [MatchedAnswerer(baseline=matrix.systems[0], family="agent/rag")]
    return paper_plan(matrix, families, atemporal=matrix.systems[-1:], matched=matched, profiles=matrix.systems)


def loop_seconds(points: Sequence[int], members: Sequence[bool], resamples: int) -> float:
    """Seconds of a bootstrap over questions of one slice's mean, in plain Python, a resample."""
    draw = random.Random(1)
    questions = range(len(points))
    started = time.perf_counter()
    for _ in range(resamples):
        right = asked = 0
        for question in draw.choices(questions, k=len(points)):
            if members[question]:
                right += points[question]
                asked += 1
    return (time.perf_counter() - started) / resamples


def main() -> int:
    """Measures once, and once more for the same bytes."""
    resamples = int(sys.argv[1]) if len(sys.argv) > 1 else RESAMPLES
    matrix = a_matrix()
    plan = a_plan(matrix)
    contrasts = sum(len(block.contrasts) for block in plan.blocks)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started, processor = time.perf_counter(), time.process_time()
    first = orjson.dumps(analyse(matrix, plan, seed=1, resamples=resamples))
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    same = first == orjson.dumps(analyse(matrix, plan, seed=1, resamples=resamples))
    one: Ints = matrix.accuracy.points[0, 0]
    loop = loop_seconds(one.tolist(), matrix.members[1].tolist(), LOOP_RESAMPLES) * 2 * contrasts * resamples
    print(f"{len(matrix.slices)} slices, {contrasts} contrasts by three methods, {resamples} resamples")
    print(f"  seconds                  {seconds:8.2f}  (at most {SECONDS})")
    print(f"  of the processor         {processor:8.2f}")
    print(f"  peak memory, MB          {peak:8.0f}  (at most {MEGABYTES}; {before:.0f} before)")
    print(f"  the same bytes again     {'yes' if same else 'NO'}")
    print(f"  a plain loop, seconds    {loop:8.0f}  over questions alone, from {LOOP_RESAMPLES} resamples of one mean")
    print(f"  ratio                    {loop / seconds:8.0f}")
    return 0 if same and seconds <= SECONDS and peak <= MEGABYTES else 1


if __name__ == "__main__":
    sys.exit(main())
