"""A data file through the local stack by the command line: `PYTHONPATH=tests python -m bench.bench_real_data FILE...`.

Three systems of the reference memory (dense, hybrid, and BM25 alone) behind the gateway, on the bundled embedder and
without a model server; a text is embedded once for all three. Prints, a file: the exit code, wall time and peak memory
of `memdock-eval run`, what it counted, and a system: recall@10 of evidence pairs and of evidence sessions, the mean
over all questions with evidence, the adversarial ones too (their evidence is the nearest topic),
which the summary of a run leaves out.
Exit code 1 when a run does not end well or the turns listed are not the turns read.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from memdock_evaluator.dataset import Dialogue, open_dataset
from memdock_evaluator.interrupting import noticing
from memdock_evaluator.results.rows import Row
from memdock_evaluator.run.requests import pairs
from memdock_evaluator.stack import LocalStack, ReferenceSystem, clean_environment, find_command, local_stack

SYSTEMS = tuple(ReferenceSystem(name=f"rag-{fusion}", fusion=fusion) for fusion in ("dense", "hybrid", "keyword"))


def main() -> int:
    """Runs every file of the command line; 0 when all went well."""
    files = [Path(word) for word in sys.argv[1:]]
    if not files:
        sys.exit("name a data file, such as locomo.json")
    with tempfile.TemporaryDirectory(prefix="memdock-real-") as folder:
        os.chmod(folder, 0o755)
        work, cache = Path(folder) / "stack", Path(folder) / "embeddings.sqlite"
        with noticing() as notice, local_stack(work, notice, systems=SYSTEMS, embedding_cache=cache) as stack:
            return max([evaluate(stack, file, Path(folder) / str(number)) for number, file in enumerate(files)])


def evaluate(stack: LocalStack, file: Path, out: Path) -> int:
    """One file's run and its figures; 1 when something is not as it must be."""
    words = ["run", "--url", stack.grpc_url, "--key-file", str(stack.key_file), "--data", str(file), "--out", str(out)]
    words += [word for system in stack.systems for word in ("--system", system)]
    print(f"\n{file.name}: memdock-eval {' '.join(words)}", flush=True)
    began = time.monotonic()
    code = subprocess.run([find_command("memdock-eval"), *words], env=clean_environment(), check=False).returncode
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{file.name}: exit code {code}, {time.monotonic() - began:.0f} s, {peak:.0f} MB at most in one process")
    if code:
        return 1
    manifest = json.loads((out / "manifest.json").read_bytes())
    ingest = {system: total["ingest"] for system, total in manifest["totals"].items()}
    print(json.dumps(ingest))
    rows = [Row.from_json(line) for line in (out / "outcomes.jsonl").read_bytes().splitlines()]
    units = evidence_units(file)
    for system in stack.systems:
        mine = [row for row in rows if row.system == system and row.evidence_turns]
        by_pair = fmean(pair_recall(row, units[row.dialogue_id]) for row in mine)
        by_session = fmean(session_recall(row) for row in mine)
        print(f"{system}: {len(mine)} questions, recall@10 of evidence pairs {by_pair:.3f}, sessions {by_session:.3f}")
    return int(any(counts["turns_listed"] != counts["turns_read"] for counts in ingest.values()))


def evidence_units(file: Path) -> dict[str, dict[str, int]]:
    """Of each dialogue: the number of the pair that a turn stands in."""
    return {dialogue.dialogue_id: dict(_numbered(dialogue)) for dialogue in open_dataset(file)}


def _numbered(dialogue: Dialogue) -> Iterator[tuple[str, int]]:
    units = (pair for session in dialogue.sessions for pair in pairs(session))
    return ((turn.turn_id, number) for number, pair in enumerate(units) for turn in pair)


def pair_recall(row: Row, unit_of: dict[str, int]) -> float:
    """The share of the pairs with evidence of which a turn came back."""
    wanted = {unit_of[turn] for turn in row.evidence_turns}
    found = {unit_of[source.turn_id] for memory in row.memories for source in memory.sources}
    return len(wanted & found) / len(wanted)


def session_recall(row: Row) -> float:
    """The share of the sessions with evidence of which a turn came back."""
    wanted = set(row.evidence_sessions)
    found = {source.session_id for memory in row.memories for source in memory.sources}
    return len(wanted & found) / len(wanted)


if __name__ == "__main__":
    sys.exit(main())
