"""A dialogue as AddTurns requests: turns in order, as many at once as the ingest unit says and the system takes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from memdock.types import Limits, Turn
from memdock_evaluator.dataset import Dialogue, DialogueTurn, Session
from memdock_evaluator.run.settings import IngestUnit

_SPOKEN = ("user", "assistant")
_ENVELOPE_BYTES = 512
"""More than what a turn's other fields and its framing take on the wire, apart from a name."""

Said = Callable[[DialogueTurn], bool]


def pairs(session: Session) -> Iterator[list[DialogueTurn]]:
    """Two spoken turns each, by position: what a user says and what is answered; system and tool turns go along."""
    pair: list[DialogueTurn] = []
    spoken = 0
    for turn in session.turns:
        if turn.role in _SPOKEN:
            if spoken == 2:
                yield pair
                pair, spoken = [], 0
            spoken += 1
        pair.append(turn)
    if pair:
        yield pair


def groups(dialogue: Dialogue, unit: IngestUnit, said: Said = lambda _: True) -> Iterator[list[Turn]]:
    """The turns that `said` holds for, in order, as the unit groups them."""
    for group in _groups(dialogue, unit, said):
        if group:
            yield group


def requests(turns: Iterable[Sequence[Turn]], limits: Limits) -> Iterator[list[Turn]]:
    """The same groups, those past the system's limits on a request cut into several."""
    for group in turns:
        request: list[Turn] = []
        size = 0
        for turn in group:
            turn_size = len(turn.text.encode()) + len(turn.name.encode()) + _ENVELOPE_BYTES
            full = len(request) == limits.max_turns_per_request or size + turn_size > limits.max_request_bytes
            if request and full:
                yield request
                request, size = [], 0
            request.append(turn)
            size += turn_size
        if request:
            yield request


def said_by(date: datetime | None) -> Said:
    """Whether a turn had been said by then; without a date, or a time of its own, it had."""
    return lambda turn: date is None or turn.time is None or turn.time <= date


def _groups(dialogue: Dialogue, unit: IngestUnit, said: Said) -> Iterator[list[Turn]]:
    if unit.batch_turns:
        batch: list[Turn] = []
        for turn in _turns(dialogue, said):
            batch.append(turn)
            if len(batch) == unit.batch_turns:
                yield batch
                batch = []
        yield batch
        return
    for session in dialogue.sessions:
        turns = {turn.turn_id: _turn(session, turn) for turn in session.turns if said(turn)}
        if unit.name == "session":
            yield list(turns.values())
        elif unit.name == "turn":
            yield from ([turn] for turn in turns.values())
        else:
            for pair in pairs(session):
                yield [turns[turn.turn_id] for turn in pair if turn.turn_id in turns]


def _turns(dialogue: Dialogue, said: Said) -> Iterator[Turn]:
    for session in dialogue.sessions:
        yield from (_turn(session, turn) for turn in session.turns if said(turn))


def _turn(session: Session, turn: DialogueTurn) -> Turn:
    return Turn(
        turn_id=turn.turn_id,
        session_id=session.session_id,
        role=turn.role,
        name=turn.name,
        text=turn.text,
        time=turn.time,
    )
