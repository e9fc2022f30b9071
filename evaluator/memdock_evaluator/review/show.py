"""One question of a run with everything that is known of it, system by system, as lines of text."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import chain, groupby
from pathlib import Path

from memdock_evaluator.dataset import DatasetError, Dialogue, open_dataset
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.plan import DataFacts
from memdock_evaluator.results.rows import Outcome, RetrievedMemory, Row, Stage, Timing
from memdock_evaluator.run.selection import source_of, stated_format
from memdock_evaluator.summary.source import RunFiles, read_run

_NEAR = 5


class ShowError(Exception):
    """There is no such question, or several; the message names those that are meant."""


def show(folder: Folder, question: str, *, languages: Sequence[str] = (), systems: Sequence[str] = ()) -> Iterator[str]:
    """The lines on a question, named by its id or as DIALOGUE/ID, "0/q3" also for "0|q3".

    Empty `languages` and `systems`: all.

    Raises `ShowError`, and what `read_run` raises.
    """
    run = read_run(folder)
    rows = sorted(_named(run.rows, question), key=lambda row: (row.language, row.system, row.repeat))
    kept = [row for row in rows if row.language in (languages or [row.language])]
    kept = [row for row in kept if row.system in (systems or [row.system])]
    if not kept:
        known = ", ".join(dict.fromkeys(f"{row.system} in {row.language}" for row in rows))
        raise ShowError(f"{folder.address} has no such row of {question}: it has {known}")
    return chain.from_iterable(_language(run, list(found)) for _, found in groupby(kept, lambda row: row.language))


def _named(rows: Iterable[Row], name: str) -> list[Row]:
    rows = list(rows)
    found = [row for row in rows if name in (row.question_id, _full(row))] or [row for row in rows if name == _in(row)]
    of_dialogues = sorted({_in(row) for row in found})
    if len(of_dialogues) > 1:
        more = ", ..." if len(of_dialogues) > _NEAR else ""
        raise ShowError(f"{name} is a question of several dialogues: name {', '.join(of_dialogues[:_NEAR])}{more}")
    if not found:
        known = sorted({_in(row) for row in rows} | {row.question_id for row in rows})
        near = get_close_matches(name, known, n=_NEAR, cutoff=0.0)
        raise ShowError(f"there is no question {name}; near are {', '.join(near)}")
    return found


def _full(row: Row) -> str:
    return f"{row.dialogue_id}/{row.question_id}"


def _in(row: Row) -> str:
    """ "0/q3", also where the id of the question says its dialogue already: "0|q3"."""
    return f"{row.dialogue_id}/{row.question_id.removeprefix(f'{row.dialogue_id}|')}"


def _language(run: RunFiles, rows: Sequence[Row]) -> Iterator[str]:
    first = rows[0]
    yield f"{first.question_id} of dialogue {first.dialogue_id} ({first.language})"
    yield from _field("question", first.question)
    yield from _field("date", _date(first.question_date))
    for reference in first.references:
        yield from _field("reference", reference)
    yield from _field("slices", ", ".join(f"{axis} {value}" for axis, value in first.axes.items()))
    if first.abstention:
        yield from _field("", "an abstention: the dialogue holds no answer")
    for line in _evidence(run.manifest.plan.data, first):
        yield from _field("evidence", line)
    timings: dict[tuple[str, ...], list[Timing]] = {}
    for timing in run.timings:
        timings.setdefault(timing.key[:4], []).append(timing)
    for row in rows:
        answer = row.repeat // run.manifest.plan.judge_repeats
        measured = [
            each
            for each in timings.get(row.key[:4], [])
            if each.repeat == (row.repeat if each.stage is Stage.JUDGE else answer)
        ]
        yield ""
        yield from _system(row, measured)


def _system(row: Row, timings: Iterable[Timing]) -> Iterator[str]:
    yield f"{row.system}, repeat {row.repeat}: {row.outcome}{', abstained' if row.abstained else ''}"
    yield from _field("reason", f"{row.reason}: {row.detail}" if row.reason else "")
    if row.failed_turns:
        lost = f", of the evidence {', '.join(row.failed_evidence)}" if row.failed_evidence else ""
        yield from _field("not stored", f"{row.failed_turns} turns{lost}")
    left_out = len(row.memories) - row.memories_given if row.outcome is Outcome.ANSWERED else 0
    if left_out > 0:
        yield from _field("given", f"{row.memories_given} of {len(row.memories)} memories; the others did not fit")
    for memory in row.memories:
        fits = left_out <= 0 or memory.rank <= row.memories_given
        yield from _field("memory" if fits else "no room", _memory(memory, row))
    if not row.memories:
        yield from _field("memory", "none in the row")
    yield from _field("answer", row.answer if row.answer is not None else "none")
    yield from _field("verdict", _verdict(row))
    scores = {
        "F1": row.f1,
        "recall by session": row.recall_sessions,
        "by turn": row.recall_turns,
        "MRR by session": row.mrr_sessions,
        "by turn ": row.mrr_turns,
        "nDCG by session": row.ndcg_sessions,
        "by turn  ": row.ndcg_turns,
    }
    shown = (f"{name.strip()} {value:g}" for name, value in scores.items() if value is not None)
    yield from _field("scores", ", ".join(shown))
    yield from _field(
        "tokens",
        f"context {row.context_tokens}; prompt {row.answer_input_tokens}, answer {row.answer_output_tokens}; "
        f"judge {row.judge_input_tokens} and {row.judge_output_tokens}"
        f"{' (estimated)' if row.tokens_estimated else ''}",
    )
    measured = (f"{each.stage}{'/' + each.inner if each.inner else ''} {each.ms:g} ms" for each in timings)
    yield from _field("times", ", ".join(measured))


def _memory(memory: RetrievedMemory, row: Row) -> str:
    """With a "+" at every source that is evidence."""
    sources = (
        f"{source.turn_id or source.session_id}{'+' if _is_evidence(source.session_id, source.turn_id, row) else ''}"
        for source in memory.sources
    )
    known = (
        memory.kind,
        "" if memory.score is None else f"score {memory.score:g}",
        memory.time or "",
        f"from {', '.join(sources)}" if memory.sources else "",
    )
    return f"{memory.rank}. [{'; '.join(filter(None, known))}] {memory.text}"


def _is_evidence(session_id: str, turn_id: str, row: Row) -> bool:
    return turn_id in row.evidence_turns if row.evidence_turns else session_id in row.evidence_sessions


def _verdict(row: Row) -> str:
    verdict = "none" if row.verdict is None else str(row.verdict)
    scored = {True: "right", False: "wrong", None: "unscored"}[row.correct]
    return f"{verdict}, {scored}{': ' + row.judge_note if row.judge_note else ''}"


def _date(written: str | None) -> str:
    return "" if written is None else f"{datetime.fromisoformat(written):%A} {written}"


def _evidence(data: DataFacts, row: Row) -> Iterator[str]:
    """The turns' texts; their ids alone where the data is not what it was, and why."""
    if not row.evidence_sessions and not row.evidence_turns:
        return
    try:
        dialogue = _dialogue(data, row)
    except (DatasetError, OSError) as error:
        yield f"{', '.join(row.evidence_turns or row.evidence_sessions)} (without texts: {error})"
        return
    for session in dialogue.sessions:
        whole = not row.evidence_turns and session.session_id in row.evidence_sessions
        for turn in session.turns:
            if whole or turn.turn_id in row.evidence_turns:
                time = turn.time.isoformat() if turn.time else "no time"
                yield f"{turn.turn_id} [{turn.role}; {time}] {turn.text}"


def _dialogue(data: DataFacts, row: Row) -> Dialogue:
    changed = ""
    for file in data.files:
        source = source_of(file)
        if hashlib.sha256(Path(source.path).read_bytes()).hexdigest() != file.sha256:
            changed = file.path
            continue
        dialogues = open_dataset(source.path, format=stated_format(data), language=source.language, zone=data.zone)
        for dialogue in dialogues:
            if (dialogue.dialogue_id, dialogue.language) == (row.dialogue_id, row.language):
                return dialogue
    raise DatasetError("has changed since the run" if changed else "does not hold the dialogue", path=changed or "data")


def _field(name: str, text: str) -> Iterator[str]:
    """Nothing for no text; further lines of a text under its first."""
    first, *more = text.splitlines() or [""]
    if text:
        yield f"  {name:<11}{first}"
        yield from (f"{'':13}{line}" for line in more)
