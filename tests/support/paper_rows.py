"""A run laid out like the paper: 13 systems, some at several k, with its bill, two judges a language and people."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, cycle, islice
from random import Random

from memdock.types import ModelUsage
from memdock_evaluator.cost.prices import read_prices
from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.results.manifest import Manifest, SystemTotals
from memdock_evaluator.results.plan import DataCounts, JudgeFacts, ModelFacts, SystemFacts
from memdock_evaluator.results.rows import Evidence, FurtherVerdict, MemorySource, RetrievedMemory, Row, Stage, Timing
from support.bills import bill_of_rows
from support.synthetic_rows import LANGUAGES, Run, a_manifest, a_row, a_system

SYSTEMS: Mapping[str, tuple[float, int]] = {
    "memorybank": (0.46, 620),
    "mem0": (0.58, 480),
    "mem0g": (0.52, 350),
    "a-mem": (0.61, 2100),
    "langmem": (0.55, 760),
    "zep": (0.64, 1500),
    "rag-dense@3": (0.60, 1300),
    "rag-dense@10": (0.69, 4300),
    "rag-dense@20": (0.71, 8600),
    "rag-hybrid": (0.72, 4400),
    "baseline:full-context": (0.79, 86000),
    "baseline:oracle": (0.88, 900),
    "baseline:refusal": (0.10, 0),
}
"""Thirteen systems: accuracy and the tokens of the context that each gives."""

DIALOGUE_TEXTS, FACT = 245, 110
"""Pairs of turns of a dialogue as long as RUMBA's, and characters of what a system that keeps facts makes of one."""

Texts = Mapping[str, Sequence[str]]
"""Pairs of turns, by language; each dialogue has `DIALOGUE_TEXTS` of its own where there are enough."""


def a_paper_run(*, dialogues: int = 85, questions: int = 1543, texts: Texts | None = None) -> Run:
    """Random figures around those of `SYSTEMS`, the same every time; `texts` stand in for one sentence a language."""
    texts = texts or {"en": ["The cat hid from the neighbours."], "ru": ["Кот прятался от соседей."]}
    rows = sorted(_rows(dialogues, questions, texts), key=lambda row: row.key)
    manifest = _manifest(dialogues, questions)
    cost = bill_of_rows(manifest.plan, manifest.totals, rows, read_prices())
    return Run(rows=tuple(rows), timings=tuple(_timings(rows)), manifest=replace(manifest, cost=cost))


def _rows(dialogues: int, questions: int, texts: Texts) -> Iterable[Row]:
    kinds = list(islice(cycle(taxonomy.TYPES), questions))
    for place, (system, (accuracy, tokens)) in enumerate(SYSTEMS.items()):
        for language in LANGUAGES:
            random = Random(f"{system} {language}")
            shift = {f"{dialogue}": random.gauss(0, 0.06) for dialogue in range(dialogues)}
            for number, kind in enumerate(kinds):
                dialogue = str(number % dialogues)
                right = random.random() < accuracy + shift[dialogue] + 0.12 * ((number % 17) / 16 - 0.5)
                own = texts[language]
                yield _row(system, language, dialogue, number, kind, right, tokens, random, own, place)


def _row(
    system: str,
    language: str,
    dialogue: str,
    number: int,
    kind: str,
    right: bool,
    tokens: int,
    random: Random,
    texts: Sequence[str],
    place: int,
) -> Row:
    scope, temporality = taxonomy.SCOPES[number // 7 % 2], taxonomy.TEMPORALITIES[number // 3 % 2]
    baseline = system.startswith("baseline:")
    label = 2 if right else 0
    second = label if random.random() < 0.85 else 2 - label
    session = f"s{number % 30 + 1}"
    found = None if baseline else float(random.random() < 0.8)
    size = int(tokens * random.uniform(0.8, 1.2))
    start = int(dialogue) * DIALOGUE_TEXTS
    own = [texts[(start + step) % len(texts)] for step in range(DIALOGUE_TEXTS)]
    # A memory that keeps the turns has the same text in every such system; a fact is a system's own words.
    facts = own if system.startswith("rag") else [text[FACT * place : FACT * (place + 1)] or text for text in own]
    reference = texts[number % len(texts)][90:150] or "Kazan"
    return a_row(
        system=system,
        language=language,
        dialogue_id=dialogue,
        question_id=f"q{number:04}",
        axes=taxonomy.axes(
            taxonomy.Category(semantic=kind, scope=scope, temporality=temporality),
            expression=taxonomy.EXPRESSIONS[number % 3],
        ),
        question=f"{texts[number % len(texts)][:90]}?",
        references=(reference,),
        sessions=35,
        evidence_sessions=(session,),
        evidence_turns=(f"{session}-t2",),
        evidence=(_evidence(session, own[number % DIALOGUE_TEXTS] + own[number // 2 % DIALOGUE_TEXTS]),),
        abstention=kind == "Abstention",
        memories=() if baseline else tuple(_memories(random, facts, session, number)),
        answer=reference if right else random.choice(own)[:100],
        verdict=label,
        correct=right,
        verdicts={"second": FurtherVerdict(label=second, input_tokens=300, output_tokens=5)},
        f1=random.random(),
        **dict.fromkeys(_MEASURES, found),
        context_tokens=size,
        answer_input_tokens=size + 120,
        answer_output_tokens=25,
        judge_input_tokens=300,
        judge_output_tokens=6,
    )


_MEASURES = ("recall_sessions", "recall_turns", "mrr_sessions", "mrr_turns", "ndcg_sessions", "ndcg_turns")


def _evidence(session: str, text: str) -> Evidence:
    """A session as a row keeps it, 3,000 characters of 10,000."""
    return Evidence(place=session, time="2024-03-05T19:20:00+00:00", text=text[:3000], cut=7000)


def _memories(random: Random, texts: Sequence[str], session: str, number: int) -> Iterable[RetrievedMemory]:
    """Ten of those of the question's dialogue."""
    for rank in range(1, 11):
        where = session if rank == 1 else f"s{(number + rank) % 30 + 1}"
        yield RetrievedMemory(
            rank=rank,
            kind="turns",
            text=random.choice(texts),
            score=round(random.random(), 6),
            time=f"2024-0{rank % 9 + 1}-05T19:20:00+00:00",
            sources=(MemorySource(session_id=where, turn_id=f"{where}-t{rank}"),),
        )


def _timings(rows: Iterable[Row]) -> Iterable[Timing]:
    for row, number in zip(rows, count()):
        where = {"system": row.system, "language": row.language, "dialogue_id": row.dialogue_id, "repeat": row.repeat}
        yield Timing(**where, question_id=row.question_id, stage=Stage.RETRIEVE, ms=20.0 + number % 50)  # type: ignore[arg-type]
        yield Timing(**where, question_id=row.question_id, stage=Stage.ANSWER, ms=700.0 + number % 90)  # type: ignore[arg-type]


def _facts(name: str) -> SystemFacts:
    if name.startswith("baseline:"):
        return SystemFacts(name=name, baseline=True)
    system, _, k = name.partition("@")
    return a_system(system, k=int(k or 10), name=name)


def _manifest(dialogues: int, questions: int) -> Manifest:
    manifest = a_manifest()
    pollux = ModelFacts(kind="openai", model="pollux-judge-7b", host="models.example", form="pollux")
    second = ModelFacts(kind="openai", model="deepseek-reasoner", host="models.example", form="json")
    facts = replace(
        manifest.plan.data, languages={code: DataCounts(dialogues=dialogues, questions=questions) for code in LANGUAGES}
    )
    plan = replace(
        manifest.plan,
        data=facts,
        systems=tuple(map(_facts, SYSTEMS)),
        judges={
            "first": JudgeFacts(languages=LANGUAGES, primary_for=LANGUAGES, model=pollux),
            "second": JudgeFacts(languages=LANGUAGES, primary_for=(), model=second),
        },
    )
    inside = ModelUsage(
        model="gpt-4.1-mini", purpose="extraction", calls=9000, input_tokens=21_000_000, output_tokens=2_400_000
    )
    totals = {name: SystemTotals(usage=() if name.startswith(("baseline:", "rag")) else (inside,)) for name in SYSTEMS}
    return replace(manifest, plan=plan, totals=totals, run_id="as-in-the-paper")
