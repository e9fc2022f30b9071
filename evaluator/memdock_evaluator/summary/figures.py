"""The figures of a set of rows that belong together: one system, one language, all questions or one slice."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from statistics import fmean

from memdock_evaluator.intervals import accuracy_interval, mean_se, proportion_se
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.scores import RetrievalScores, retrieval_scores
from memdock_evaluator.summary.shape import Bounds, DeleteInfo, FailedTurns, Figures, IntervalFigures, Recall

CUTOFFS = (1, 3, 5, 10)
"""Numbers of memories: systems that find nearly everything among ten still differ at fewer."""

Value = Callable[[Row], float | None]
"""A row's value of one measure; `None`: the row does not count for it."""


def figures(rows: Sequence[Row]) -> Figures:
    """The scores of `rows`, at least one."""
    scores, f1 = _by_dialogue(rows, score), _values(rows, _f1)
    flat = _flat(scores)
    accuracy = _mean(flat)
    targets = _targets(rows)
    recall = _values(targets, lambda row: row.recall_sessions)
    return Figures(
        n_questions=len(_questions(rows)),
        n_scored=len(flat),
        n_evidence=len(_questions(row for row in targets if row.evidence_sessions and not row.abstention)),
        n_retrieval=len(recall),
        coverage=sum(score(row) is not None for row in rows) / len(rows),
        judge_accuracy=accuracy,
        judge_accuracy_se=None if accuracy is None else proportion_se(accuracy, len(flat)),
        judge_accuracy_interval=_interval(scores),
        judge_accuracy_bounds=_bounds(rows),
        f1=_mean(f1),
        f1_se=mean_se(f1),
        recall_at_k=_mean(recall),
        recall_turns_at_k=_mean(_values(targets, lambda row: row.recall_turns)),
        mrr=_mean(_values(targets, lambda row: row.mrr_sessions)),
        mrr_turns=_mean(_values(targets, lambda row: row.mrr_turns)),
        ndcg=_mean(_values(targets, lambda row: row.ndcg_sessions)),
        ndcg_turns=_mean(_values(targets, lambda row: row.ndcg_turns)),
    )


def recall_at(rows: Sequence[Row], k: int) -> dict[str, Recall]:
    """Recall as it were if fewer memories had been asked for: at each of `CUTOFFS` below `k`, and at `k`."""
    targets = _targets(rows)
    return {str(cutoff): _recall(targets, cutoff) for cutoff in (*(each for each in CUTOFFS if each < k), k)}


def failed_turns(rows: Iterable[Row]) -> FailedTurns:
    """What failed turns touch."""
    touched = [row for row in rows if row.failed_turns]
    return FailedTurns(
        n_dialogues=len({row.dialogue_id for row in touched}),
        n_questions=len(_questions(row for row in touched if row.failed_evidence)),
    )


def delete_info(rows: Iterable[Row]) -> DeleteInfo:
    """Recall of what was to be forgotten."""
    deletions = [row for row in rows if _is_deletion(row)]
    return DeleteInfo(
        n_questions=len(_questions(deletions)),
        recall_at_k=_mean(_values(deletions, lambda row: row.recall_sessions)),
        recall_turns_at_k=_mean(_values(deletions, lambda row: row.recall_turns)),
    )


def score(row: Row) -> float | None:
    """1 right, 0 wrong, `None` without a score. An error that the system caused is wrong: crashing must not pay."""
    if row.outcome is Outcome.SYSTEM_ERROR:
        return 0.0
    if row.outcome is not Outcome.ANSWERED or row.correct is None:
        return None
    return float(row.correct)


def _targets(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that retrieval is measured by."""
    return [row for row in rows if not _is_deletion(row)] or rows


def _recall(rows: Sequence[Row], cutoff: int) -> Recall:
    scores = {row.key: _scores(row, cutoff) for row in rows}

    def mean(known: Value, value: Callable[[RetrievalScores], float | None]) -> float | None:
        return _mean(_values(rows, lambda row: None if known(row) is None else value(scores[row.key])))

    return Recall(
        sessions=mean(lambda row: row.recall_sessions, lambda each: each.recall_sessions),
        turns=mean(lambda row: row.recall_turns, lambda each: each.recall_turns),
    )


def _scores(row: Row, cutoff: int) -> RetrievalScores:
    sources = [[(source.session_id, source.turn_id) for source in memory.sources] for memory in row.memories]
    return retrieval_scores(sources, row.evidence_sessions, row.evidence_turns, cutoff)


def _f1(row: Row) -> float | None:
    return 0.0 if row.outcome is Outcome.SYSTEM_ERROR else row.f1


def _values(rows: Sequence[Row], value: Value) -> list[float]:
    """One value a question that has any."""
    return _flat(_by_dialogue(rows, value))


def _is_deletion(row: Row) -> bool:
    return row.axes.get("semantic") == "DeleteInfo"


def _questions(rows: Iterable[Row]) -> set[tuple[str, str]]:
    return {(row.dialogue_id, row.question_id) for row in rows}


def _by_dialogue(rows: Iterable[Row], value: Value) -> Mapping[str, Sequence[float]]:
    """Dialogue -> one value a question that has any: the mean over its repeats."""
    repeats: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if (found := value(row)) is not None:
            repeats[row.dialogue_id, row.question_id].append(found)
    dialogues: defaultdict[str, list[float]] = defaultdict(list)
    for (dialogue, _), values in repeats.items():
        dialogues[dialogue].append(fmean(values))
    return dialogues


def _flat(dialogues: Mapping[str, Sequence[float]]) -> list[float]:
    return list(chain.from_iterable(dialogues.values()))


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _interval(scores: Mapping[str, Sequence[float]]) -> IntervalFigures | None:
    interval = accuracy_interval(scores.values())
    return None if interval is None else IntervalFigures(**asdict(interval))  # type: ignore[typeddict-item]


def _bounds(rows: Sequence[Row]) -> Bounds:
    low = _values(rows, lambda row: score(row) or 0.0)
    high = _values(rows, lambda row: 1.0 if score(row) is None else score(row))
    return Bounds(low=fmean(low), high=fmean(high))
