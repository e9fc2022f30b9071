"""The words of the evidence that a row keeps: of the turns that are named, or of a session without any, in bounds."""

from dataclasses import replace
from datetime import UTC, datetime

from memdock_evaluator.dataset import Dialogue, DialogueTurn, Question, Session
from memdock_evaluator.results.rows import Evidence
from memdock_evaluator.run.evidence import EVIDENCE_CHARACTERS, evidence_of

TIME = datetime(2024, 3, 5, 19, 20, tzinfo=UTC)
FIRST = Session(
    session_id="s1",
    index=1,
    time=TIME,
    turns=(
        DialogueTurn(turn_id="s1-t0", role="user", text="I moved to Kazan", time=TIME),
        DialogueTurn(turn_id="s1-t1", role="assistant", text="How nice"),
    ),
)
LONG = Session(session_id="s2", index=2, turns=(DialogueTurn(turn_id="s2-t0", role="user", text="x" * 5000),))
QUESTION = Question(question_id="q0", text="Where?", references=("Kazan",))
DIALOGUE = Dialogue(dialogue_id="0", language="en", sessions=(FIRST, LONG), questions=())


def evidence(evidence_turns: tuple[str, ...] = (), evidence_sessions: tuple[str, ...] = ()) -> list[Evidence]:
    question = replace(QUESTION, evidence_turns=evidence_turns, evidence_sessions=evidence_sessions)
    return list(evidence_of(question, DIALOGUE))


def test_named_turns_have_their_words_in_the_order_of_the_dialogue() -> None:
    found = evidence(evidence_turns=("s1-t1", "s1-t0"), evidence_sessions=("s1",))
    assert [(each.place, each.text, each.time) for each in found] == [
        ("s1-t0", "user: I moved to Kazan", "2024-03-05T19:20:00+00:00"),
        ("s1-t1", "assistant: How nice", "2024-03-05T19:20:00+00:00"),
    ]


def test_a_session_without_a_named_turn_is_there_as_a_whole() -> None:
    (found,) = evidence(evidence_sessions=("s1",))
    assert (found.place, found.text, found.cut) == ("s1", "user: I moved to Kazan\nassistant: How nice", 0)


def test_what_is_long_is_cut_and_says_by_how_much() -> None:
    (found,) = evidence(evidence_sessions=("s2",))
    assert len(found.text) == EVIDENCE_CHARACTERS
    assert found.cut == len("user: ") + 5000 - EVIDENCE_CHARACTERS
    assert found.time is None


def test_without_evidence_there_is_nothing_to_show() -> None:
    assert evidence() == []
