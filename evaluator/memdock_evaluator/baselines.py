"""What answers look like without a memory system: bounds to hold its figures against.

A baseline is run as a system of its own, "baseline:<name>": same questions, answer prompt and judge.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from memdock_evaluator.dataset import Dialogue, DialogueTurn, Question, Session
from memdock_evaluator.results.rows import MemorySource, RetrievedMemory
from memdock_evaluator.run.requests import Said, pairs

PREFIX = "baseline:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """`memories` gives what stands for the retrieved memories; `said` holds for the turns that may be used.

    `asks_model` false: the answer is the fixed refusal. `keeps_memories` false: rows leave the memories out, for each
    would hold the whole dialogue.
    """

    name: str
    about: str
    memories: Callable[[Dialogue, Question, Said], Sequence[RetrievedMemory]]
    asks_model: bool = True
    keeps_memories: bool = True

    @property
    def system(self) -> str:
        """Its name among the systems."""
        return PREFIX + self.name


def _nothing(_: Dialogue, __: Question, ___: Said) -> Sequence[RetrievedMemory]:
    return ()


def _whole_dialogue(dialogue: Dialogue, _: Question, said: Said) -> Sequence[RetrievedMemory]:
    return _ranked((session, [turn for turn in session.turns if said(turn)]) for session in dialogue.sessions)


def _evidence(dialogue: Dialogue, question: Question, said: Said) -> Sequence[RetrievedMemory]:
    """The pairs that hold an evidence turn, or the evidence sessions where no turn is known."""
    wanted = set(question.evidence_turns)
    if not wanted:
        sessions = [session for session in dialogue.sessions if session.session_id in question.evidence_sessions]
        return _ranked((session, [turn for turn in session.turns if said(turn)]) for session in sessions)
    sessions = [each for each in dialogue.sessions if not wanted.isdisjoint([turn.turn_id for turn in each.turns])]
    return _ranked(
        (session, [turn for turn in pair if said(turn)])
        for session in sessions  # to pair the turns of all would take a fifth of a fast run
        for pair in pairs(session)
        if wanted & {turn.turn_id for turn in pair}
    )


BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {
        baseline.name: baseline
        for baseline in (
            Baseline(
                name="full-context",
                about="the whole dialogue in the prompt",
                memories=_whole_dialogue,
                keeps_memories=False,
            ),
            Baseline(name="oracle", about="the evidence, as if retrieved without fail", memories=_evidence),
            Baseline(name="closed-book", about="no memories at all", memories=_nothing),
            Baseline(
                name="refusal",
                about='"there is no such information" to every question',
                memories=_nothing,
                asks_model=False,
            ),
        )
    }
)


def _ranked(excerpts: Iterable[tuple[Session, Sequence[DialogueTurn]]]) -> Sequence[RetrievedMemory]:
    """Excerpts in the dialogue's order as memories of kind "excerpt", empty ones left out."""
    spoken = [(session, turns) for session, turns in excerpts if turns]
    return tuple(_memory(rank, session, turns) for rank, (session, turns) in enumerate(spoken, start=1))


def _memory(rank: int, session: Session, turns: Sequence[DialogueTurn]) -> RetrievedMemory:
    return RetrievedMemory(
        rank=rank,
        kind="excerpt",
        text="\n".join(f"{turn.role}: {turn.text}" for turn in turns),
        score=None,
        time=_iso(turns[0].time or session.time),
        sources=tuple(MemorySource(session_id=session.session_id, turn_id=turn.turn_id) for turn in turns),
    )


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
