"""The report of a run of the paper's size: how large its page is, how soon it opens, and what building it takes.

`python -m bench.bench_report`, with `tests` on the path. 13 systems x 1,543 questions x 2 languages with texts that
pack as badly as real ones, ten memories a question. Exit code 1 when a cap is broken; the seconds of the processor tell
whether the machine was busy with something else.
"""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.browser import CHROMIUM, browser
from support.natural_text import texts
from support.paper_rows import DIALOGUE_TEXTS, a_paper_run
from support.synthetic_rows import LANGUAGES

DIALOGUES, CHARACTERS = 85, 1700
MEGABYTES, MEMORY_MB, OPEN_SECONDS = 15, 640, 3
"""Of the memory, the rows take about 310 MB and the comparisons most of the rest."""

# What the kernel tells of a child's memory begins with that of its parent; the child's own status does not.
_BUILD = """
import re, sys
from pathlib import Path
from memdock_evaluator.report import write_report
write_report(sys.argv[1])
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def main() -> int:
    """Measures once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = {code: texts(code, number=DIALOGUES * DIALOGUE_TEXTS, characters=CHARACTERS) for code in LANGUAGES}
        run = a_paper_run(dialogues=DIALOGUES, texts=own).write(folder / "run")
        print(f"{(run / 'outcomes.jsonl').stat().st_size / 1e6:.0f} MB of rows", flush=True)
        del own
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", _BUILD, str(run)], check=True, stdout=subprocess.PIPE, text=True)
        seconds = time.perf_counter() - started
        built = resource.getrusage(resource.RUSAGE_CHILDREN)
        memory, processor = int(done.stdout) / 1024, built.ru_utime + built.ru_stime
        sizes = {path.name: path.stat().st_size / 1e6 for path in run.glob("report*.html")}
        opened = asyncio.run(_opened(run / "report.html", folder / "profile")) if CHROMIUM else None
    print(f"  seconds to build         {seconds:8.1f}")
    print(f"  of the processor         {processor:8.1f}")
    print(f"  peak memory, MB          {memory:8.0f}  (at most {MEMORY_MB})")
    for page, size in sorted(sizes.items()):
        print(f"  {page:24} {size:8.1f}  MB (at most {MEGABYTES})")
    print(
        f"  seconds to open          {'no Chromium' if opened is None else f'{opened:8.2f}'}  (at most {OPEN_SECONDS})"
    )
    kept = memory <= MEMORY_MB and max(sizes.values()) <= MEGABYTES and (opened or 0) <= OPEN_SECONDS
    return 0 if kept else 1


async def _opened(page: Path, profile: Path) -> float:
    """Seconds from the address to a list of questions that can be used."""
    async with browser(profile) as tab:
        await tab.open(page)
        started = time.perf_counter()
        await tab.open(page)
        await tab.run("window.explorerReady")
        return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
