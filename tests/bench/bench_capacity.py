"""`memdock-eval capacity` against a run that is measured: `python -m bench.bench_capacity [RUNS]`.

With `tests` on the path. The runs are those of `bench_run`. What is predicted knows the sizes, the places of the
provider, and, measured just before, how long a call takes on this machine now (by the bare loop) and what share of a
core a process gets; of the run itself it knows nothing. Exit code 1 where the best run is further from what was
predicted than a quarter.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from bench.bench_run import CALLS, DIALOGUES, QUESTIONS, SESSIONS, UNITS, bare, evaluated, part, write_data
from bench.run_parts import AT_ONCE
from memdock_evaluator.capacity.shape import Platform, Workload
from memdock_evaluator.capacity.simulation import predict
from memdock_evaluator.results.manifest import Price

FURTHEST, PROBE_S = 0.25, 5.0


def main() -> int:
    """Measures, predicts and prints."""
    found = []
    with tempfile.TemporaryDirectory(prefix="memdock-bench-") as made:
        folder = Path(made)
        data = write_data(folder / "rumba.jsonl")
        for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
            with part("model", folder) as model, part("memory", folder) as memory:
                url = f"http://127.0.0.1:{model}/v1"
                bare_s, share = asyncio.run(bare(url)), share_of_a_core()
                run_s, own_s, _ = evaluated(data, folder / f"run-{number}", url, f"grpc://127.0.0.1:{memory}")
            predicted_s = predicted(bare_s * AT_ONCE / CALLS, share)
            found.append(run_s / predicted_s)
            print(
                f"measured {run_s:.1f} s, predicted {predicted_s:.1f} s: {found[-1]:.2f} of it; "
                f"bare loop {bare_s:.1f} s, {own_s:.1f} s of a processor, of which a process got {100 * share:.0f} %",
                flush=True,
            )
    best = min(found, key=lambda each: abs(each - 1))
    print(f"best {best:.2f}; at most {FURTHEST:g} away")
    return int(abs(best - 1) > FURTHEST)


def share_of_a_core() -> float:
    """What a process that wants to work all the time gets."""
    wall, own = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < PROBE_S:
        pass
    return (time.process_time() - own) / (time.perf_counter() - wall)


def predicted(call_s: float, share: float) -> float:
    """Seconds: a memory system and a baseline, which both answer and judge, in one process."""
    work = Workload(systems=UNITS, dialogues=DIALOGUES, questions=round(QUESTIONS / DIALOGUES), requests=SESSIONS)
    on = Platform(
        dialogues_at_once=32,
        embed_s=0,
        embed_query_s=0,
        call_s=call_s,
        call_spread=0,
        provider_calls=AT_ONCE,
        evaluator_s=Platform().evaluator_s / share,
        upload_s=0,
        uploads_per_second=0,
    )
    return predict(work, on, Price(input=0, output=0)).seconds


if __name__ == "__main__":
    sys.exit(main())
