"""In which script a system's memories are written, beside that of the dialogue: Russian talk, English memories."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from memdock_evaluator.results.rows import Row
from memdock_evaluator.suites.shares import share_of

LOOKED_AT = 300
"""Characters at a text's beginning: a run of RUMBA's size gives hundreds of megabytes of memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScript:
    """Of the memories that a system gave for a language's questions, those in another script than the questions.

    `n` counts memories as often as they were given; those without a letter are left out. `low` to `high` is the 95 %
    interval by dialogue. `scripts` counts by script, such as "CYRILLIC".
    """

    system: str
    language: str
    n: int
    other: int
    share: float | None
    low: float | None
    high: float | None
    scripts: dict[str, int]


def memory_scripts(rows: Iterable[Row]) -> tuple[MemoryScript, ...]:
    """Each system and language whose rows hold memories."""
    found: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for row in rows:
        wanted = script_of(row.question)
        for memory in row.memories if not row.judging else ():
            if wanted and (script := script_of(memory.text)):
                found[row.system, row.language].append((row.dialogue_id, wanted, script))
    return tuple(_of(*place, mine) for place, mine in sorted(found.items()))


def script_of(text: str) -> str:
    """The script of most letters at a text's beginning, as Unicode names it; "" without letters there."""
    counts = Counter[str]()
    for letter, times in Counter(text[:LOOKED_AT]).items():
        if script := _script(letter):
            counts[script] += times
    return max(sorted(counts), key=lambda script: counts[script], default="")


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0] if letter.isalpha() else ""


def _of(system: str, language: str, memories: list[tuple[str, str, str]]) -> MemoryScript:
    share = share_of((dialogue, wanted != script, 1) for dialogue, wanted, script in memories)
    return MemoryScript(
        system=system,
        language=language,
        n=share["of"],
        other=share["events"],
        share=_rounded(share["share"]),
        low=_rounded(share["low"]),
        high=_rounded(share["high"]),
        scripts=dict(sorted(Counter(script for *_, script in memories).items())),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
