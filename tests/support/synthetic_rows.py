"""Rows, timings and a manifest as a run would write them, with a truth that is known without the code under test."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.results.manifest import Coverage, IngestCounts, Manifest, SystemTotals
from memdock_evaluator.results.plan import DataCounts, DataFacts, DataFile, ModelFacts, Plan, SystemFacts
from memdock_evaluator.results.rows import Evidence, MemorySource, Outcome, RetrievedMemory, Row, Stage, Timing

HOSTILE = "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'> & \"quoted\""
"""Text that breaks a page which does not escape what it shows."""

MEMORY_SYSTEMS, BASELINES = ("rag-dense", "rag-hybrid"), ("baseline:full-context", "baseline:refusal")
LANGUAGES = ("en", "ru")
SENTENCES = {
    "en": "I moved to Kazan in March, and the cat still hides from the new neighbours.",
    "ru": "В марте я переехала в Казань, а кот до сих пор прячется от новых соседей.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that a run's folder holds before it is summed up."""

    rows: tuple[Row, ...]
    timings: tuple[Timing, ...]
    manifest: Manifest

    def write(self, folder: Path) -> Path:
        """Write the three files, as the run does."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.joinpath("outcomes.jsonl").write_bytes(b"".join(row.to_json() + b"\n" for row in self.rows))
        folder.joinpath("timings.jsonl").write_bytes(b"".join(time.to_json() + b"\n" for time in self.timings))
        folder.joinpath("manifest.json").write_bytes(self.manifest.to_json())
        return folder


def a_row(**changes: Any) -> Row:
    """A right answer to a StaticUser question about one session, found at rank 1."""
    row = Row(
        system="rag-dense",
        language="en",
        dialogue_id="0",
        question_id="q0",
        repeat=0,
        axes=taxonomy.axes(taxonomy.Category(semantic="StaticUser", scope="single", temporality="atemporal")),
        abstention=False,
        question="Where do I live?",
        references=("In Kazan",),
        question_date="2024-10-02T10:00:00+00:00",
        evidence_sessions=("s1",),
        evidence_turns=("s1-t0",),
        outcome=Outcome.ANSWERED,
        answer="In Kazan",
        verdict=2,
        correct=True,
        f1=1.0,
        recall_sessions=1.0,
        recall_turns=1.0,
        mrr_sessions=1.0,
        mrr_turns=1.0,
        ndcg_sessions=1.0,
        ndcg_turns=1.0,
    )
    return replace(row, **changes)


def a_system(system: str, k: int = 10, **changes: Any) -> SystemFacts:
    """A memory system that is asked for ten memories, and under a name of its own for any other number."""
    facts = SystemFacts(
        name=system if k == 10 else f"{system}@{k}",
        system=system,
        k=k,
        ingest_unit="pair",
        config_digest=f"digest of {system}",
    )
    return replace(facts, **changes)


def a_manifest(**plan_changes: Any) -> Manifest:
    """A finished run of a real answerer and judge over two memory systems and two baselines."""
    plan = Plan(
        evaluator_version="0.1.0",
        data=DataFacts(
            files=(DataFile(path="own", sha256="ab" * 32),),
            format="own",
            zone="UTC",
            dialogues=(),
            languages={language: DataCounts(dialogues=6, questions=102) for language in LANGUAGES},
            oddities={},
        ),
        systems=(
            *(a_system(name) for name in MEMORY_SYSTEMS),
            *(SystemFacts(name=name, baseline=True) for name in BASELINES),
        ),
        repeats=1,
        seed=7,
        reference_time=False,
        as_of=False,
        answerer=ModelFacts(kind="openai", model="gpt-4.1-mini", host="models.example", temperature=0.0),
        judge=ModelFacts(kind="openai", model="pollux-judge-7b", host="models.example", form="pollux"),
    )
    return Manifest(
        run_id="synthetic",
        started=datetime(2024, 10, 2, 10, tzinfo=UTC),
        finished=datetime(2024, 10, 2, 10, 5, tzinfo=UTC),
        command=("memdock-eval", "run", "--k", "10"),
        versions={"memdock-evaluator": "0.1.0", "python": "3.11.7"},
        plan=replace(plan, **plan_changes),
    )


def a_run(*, dialogues: int = 6, offline: bool = False, hostile: bool = False) -> Run:
    """Every semantic type once a dialogue, in two languages, by two memory systems and two baselines.

    The truth: `rag-dense` answers every third question wrong, `rag-hybrid` every fifth, the baseline `full-context`
    every sixth, and `refusal` all but Abstention and DeleteInfo. In English dialogue 0, question 0 of
    `rag-dense` failed in the system, question 1 met an infrastructure error, and question 2 has no readable verdict.
    """
    rows = sorted(
        (
            row
            for system in (*MEMORY_SYSTEMS, *BASELINES)
            for language in LANGUAGES
            for dialogue in range(dialogues)
            for row in _dialogue(system, language, dialogue, SENTENCES[language] + HOSTILE * hostile)
        ),
        key=lambda row: row.key,
    )
    manifest = a_manifest()
    if offline:
        model = ModelFacts(kind="offline")
        manifest = replace(manifest, plan=replace(manifest.plan, answerer=model, judge=model))
    return Run(
        rows=tuple(rows),
        timings=tuple(sorted(_timings(rows), key=lambda timing: timing.key)),
        manifest=replace(manifest, totals={name: _totals(rows, name) for name in (*MEMORY_SYSTEMS, *BASELINES)}),
    )


MEASURES = ("recall_sessions", "recall_turns", "mrr_sessions", "mrr_turns", "ndcg_sessions", "ndcg_turns")
WRONG_EVERY = {"rag-dense": 3, "rag-hybrid": 5, "baseline:full-context": 6}


def _dialogue(system: str, language: str, dialogue: int, sentence: str) -> Iterator[Row]:
    for index, semantic in enumerate(taxonomy.TYPES):
        row = _question(system, language, dialogue, index, semantic, sentence)
        if (system, language, dialogue) == ("rag-dense", "en", 0):
            row = _failed(row, index)
        yield row


def _failed(row: Row, index: int) -> Row:
    nothing: dict[str, Any] = {"answer": None, "verdict": None, "correct": None, "f1": None, "memories": ()}
    if index == 0:
        not_found: dict[str, Any] = dict.fromkeys(MEASURES, 0.0)
        return replace(row, outcome=Outcome.SYSTEM_ERROR, reason="INTERNAL", detail="gone", **nothing, **not_found)
    if index == 1:
        unmeasured: dict[str, Any] = dict.fromkeys(MEASURES)
        return replace(row, outcome=Outcome.INFRASTRUCTURE_ERROR, reason="deadline", **nothing, **unmeasured)
    if index == 2:
        return replace(row, verdict=None, correct=None, judge_note="no verdict in the reply")
    return row


def _question(system: str, language: str, dialogue: int, index: int, semantic: str, sentence: str) -> Row:
    scope, temporality = taxonomy.SCOPES[index % 2], taxonomy.TEMPORALITIES[index // 2 % 2]
    number = dialogue * len(taxonomy.TYPES) + index
    abstention = semantic == "Abstention"
    right = number % WRONG_EVERY[system] != 0 if system in WRONG_EVERY else semantic in ("Abstention", "DeleteInfo")
    session = f"s{index % 5 + 1}"
    memory = system in MEMORY_SYSTEMS
    found = 1.0 if right else 0.0
    measured = found if memory and not abstention else None
    return a_row(
        system=system,
        language=language,
        dialogue_id=str(dialogue),
        question_id=f"q{index:02}",
        axes=taxonomy.axes(
            taxonomy.Category(semantic=semantic, scope=scope, temporality=temporality),
            expression=taxonomy.EXPRESSIONS[index % 3],
        ),
        abstention=abstention,
        question=f"{semantic}? {sentence}",
        references=(sentence, "Kazan"),
        evidence_sessions=(session,),
        evidence_turns=(f"{session}-t2",),
        evidence=(Evidence(place=f"{session}-t2", time=None, text=f"user: Listen. {sentence}"),),
        memories=tuple(_memories(session, sentence, right)) if memory else (),
        answer=sentence if right else "I do not know.",
        abstained=not right,
        verdict=2 if right else 0,
        correct=right,
        f1=found,
        **dict.fromkeys(MEASURES, measured),
        context_tokens=400,
        memories_given=10 * memory,
        answer_input_tokens=500,
        answer_output_tokens=20,
        judge_input_tokens=300,
        judge_output_tokens=5,
        tokens_estimated=True,
    )


def _memories(session: str, sentence: str, right: bool) -> Iterator[RetrievedMemory]:
    for rank in range(1, 11):
        source = (session, f"{session}-t2") if right and rank == 1 else (f"s{rank + 5}", f"s{rank + 5}-t0")
        yield RetrievedMemory(
            rank=rank,
            kind="turns",
            text=f"{rank}. {sentence}",
            score=1 / rank,
            time="2024-03-05T19:20:00+00:00",
            sources=(MemorySource(session_id=source[0], turn_id=source[1]),),
        )


def _timings(rows: Sequence[Row]) -> Iterator[Timing]:
    """Retrieval takes 1, 2, 3 ... ms over a system's questions; storing 40 ms a request."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        place = counts[row.system, row.language] = counts.get((row.system, row.language), 0) + 1
        where: dict[str, Any] = {name: getattr(row, name) for name in ("system", "language", "dialogue_id", "repeat")}
        yield Timing(**where, question_id=row.question_id, stage=Stage.RETRIEVE, ms=float(place))
        yield Timing(**where, question_id=row.question_id, stage=Stage.RETRIEVE, inner="embed", ms=place / 2)
        yield Timing(**where, question_id=row.question_id, stage=Stage.ANSWER, ms=700.0 + place)
        yield Timing(**where, question_id=None, stage=Stage.ADD, ms=40.0)


def _totals(rows: Sequence[Row], system: str) -> SystemTotals:
    own = [row for row in rows if row.system == system]
    outcomes = {outcome: sum(row.outcome is outcome for row in own) for outcome in Outcome}
    return SystemTotals(
        ingest=IngestCounts(requests=300, turns_read=600, turns_listed=600, searchable=600),
        coverage=Coverage(
            expected=len(own),
            answered=outcomes[Outcome.ANSWERED],
            refused=outcomes[Outcome.REFUSED],
            system_error=outcomes[Outcome.SYSTEM_ERROR],
            infrastructure_error=outcomes[Outcome.INFRASTRUCTURE_ERROR],
            scored=sum(row.correct is not None for row in own) + outcomes[Outcome.SYSTEM_ERROR],
        ),
    )
