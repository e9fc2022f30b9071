"""What is looked for after Forget and what counts as found: in words, in sources, in both languages."""

import pytest

from memdock.types import Memory, Source, TurnRecord, TurnState
from memdock_evaluator.dataset import Dialogue, DialogueTurn, Question, Session
from memdock_evaluator.forgetting.measuring import Measuring, scope_of
from memdock_evaluator.forgetting.modes import Mode, Scope, evidence_of, scope_by_memory, selections
from memdock_evaluator.forgetting.rows import TargetRow
from memdock_evaluator.forgetting.settings import ForgettingSettings
from memdock_evaluator.forgetting.space import Erased, Seen
from memdock_evaluator.forgetting.suite import drawn
from memdock_evaluator.forgetting.traces import Speech, Trace, left
from memdock_evaluator.run.settings import RunSettings

SAID = ("The code of the gate is 5083", "I have noted it", "My cat Bublik is ginger", "Ginger cats are bold")
CODE = Question(question_id="q0", text="What is the code of the gate", references=("5083",), evidence_turns=("s1-t0",))
CAT = Question(question_id="q1", text="What is the cat called", references=("Bublik",), evidence_turns=("s1-t2",))


def dialogue_of(*texts: str, language: str = "en", questions: tuple[Question, ...] = (CODE, CAT)) -> Dialogue:
    turns = tuple(
        DialogueTurn(turn_id=f"s{place // 2 + 1}-t{place % 2}", role=("user", "assistant")[place % 2], text=text)
        for place, text in enumerate(texts)
    )
    sessions = tuple(
        Session(session_id=f"s{place + 1}", index=place + 1, turns=turns[2 * place : 2 * place + 2])
        for place in range(len(turns) // 2)
    )
    return Dialogue(dialogue_id="0", language=language, sessions=sessions, questions=questions)


def memory(text: str, *turn_ids: str, memory_id: str = "m") -> Memory:
    sources = tuple(Source(session_id=turn_id.split("-")[0], turn_id=turn_id) for turn_id in turn_ids)
    return Memory(memory_id=memory_id, text=text, sources=sources)


def seen(
    *memories: Memory,
    listed: tuple[Memory, ...] | None = None,
    states: dict[str, TurnState] | None = None,
    memory_ids: tuple[str, ...] = (),
) -> Seen:
    """Every question brings the same memories."""
    turns = {
        turn_id: TurnRecord(turn_id=turn_id, session_id=turn_id.split("-")[0], state=state, memory_ids=memory_ids)
        for turn_id, state in (states or {}).items()
    }
    found = dict.fromkeys(("q0", "q1"), memories)
    return Seen(at_k=found, deep=found, listed=listed, turns=turns, faults={})


def test_only_words_that_nothing_else_says_are_looked_for() -> None:
    wanted = Speech(dialogue_of(*SAID)).wanted(CODE, {"s1-t0"}, {"s1-t0"})
    assert wanted == Trace(turns=("s1-t0",), words=("5083", "code", "gate"), answer=("5083",))
    assert Speech(dialogue_of("The code is 5083", *SAID[1:], "It is 5083", "Yes")).wanted(
        CODE, {"s1-t0"}, {"s1-t0"}
    ) == Trace(turns=("s1-t0",), words=("code",)), "5083 is said by a turn that stays"


def test_what_systems_write_by_themselves_is_nobodys_word() -> None:
    speech = Speech(dialogue_of("A user told the assistant of 5083", *SAID[1:]))
    assert speech.wanted(CODE, {"s1-t0"}, {"s1-t0"}).words == ("5083", "told")


def test_russian_words_are_found_in_other_cases() -> None:
    cat = Question(question_id="q1", text="Как зовут кота", references=("Бублик",), evidence_turns=("s1-t0",))
    speech = Speech(dialogue_of("У меня рыжий кот Бублик", "Ясно", "Еду на дачу", "Удачи", language="ru"))
    wanted = speech.wanted(cat, {"s1-t0"}, {"s1-t0"})
    found = speech.found(wanted, [memory("Пользователь рассказал о рыжем Бублике")])
    assert found.answer == wanted.answer
    assert left(wanted, [found]) == ("words", "answer")


@pytest.mark.parametrize(
    ("before", "after", "signs"),
    [
        (Trace(turns=("a", "b"), words=("x", "y", "z"), answer=("z",)), Trace(), ()),
        (Trace(turns=("a",)), Trace(turns=("a",)), ("turns",)),
        (Trace(), Trace(turns=("a",)), ("turns",)),
        (Trace(words=("v", "w", "x", "y")), Trace(words=("v", "w")), ("words",)),
        (Trace(words=("u", "v", "w", "x", "y")), Trace(words=("v", "w")), ()),
        (Trace(words=("v",)), Trace(words=("v",)), ()),
        (Trace(), Trace(words=("v", "w", "x")), ()),
        (Trace(words=("v", "w", "x", "y", "z"), answer=("y", "z")), Trace(words=("y",), answer=("y",)), ()),
        (Trace(words=("v", "x", "z"), answer=("z",)), Trace(words=("z",), answer=("z",)), ("answer",)),
    ],
)
def test_a_sign_is_what_was_there_before_and_no_accident(before: Trace, after: Trace, signs: tuple[str, ...]) -> None:
    assert left(before, [Trace(), after]) == signs


def test_evidence_by_session_is_all_of_its_turns() -> None:
    question = Question(question_id="q", text="?", references=("x",), evidence_sessions=("s2",))
    assert evidence_of(question, dialogue_of(*SAID)) == ("s2-t0", "s2-t1")


def test_a_memory_stands_on_what_it_names_and_on_what_the_turns_name() -> None:
    turns = seen(states={"s1-t1": TurnState.SEARCHABLE}, memory_ids=("m1",)).turns
    memories = [memory("pair", "s1-t0", memory_id="m1"), memory("other", "s2-t0", memory_id="m2")]
    scope = scope_by_memory({"s1-t0"}, memories, turns)
    assert scope == Scope(ids=("m1",), turns=frozenset({"s1-t0", "s1-t1"}))
    assert scope_by_memory({"s9-t9"}, memories, turns).ids == ()


def test_memories_without_sources_are_chosen_by_the_words_of_the_evidence() -> None:
    dialogue = dialogue_of(*SAID)
    before = seen(memory("The gate code is 5083", memory_id="m1"), memory("The cat is ginger", memory_id="m2"))
    assert scope_of(Mode.MEMORY, CODE, dialogue, before, Speech(dialogue)) == Scope(ids=("m1",), turns=None)
    nothing = seen(memory("The cat is ginger", memory_id="m2"))
    assert scope_of(Mode.MEMORY, CODE, dialogue, nothing, Speech(dialogue)).ids == ()


def test_many_ids_go_in_selectors_that_the_protocol_takes() -> None:
    ids = [str(number) for number in range(2001)]
    made = list(selections(Mode.TURN, ids))
    assert [len(each.turn_ids) for each in made] == [1000, 1000, 1]
    assert [turn_id for each in made for turn_id in each.turn_ids] == ids
    assert list(selections(Mode.SESSION, [])) == []


def measured(before: Seen, after: Seen, retried: Seen, gone: frozenset[str] = frozenset({"s1-t0"})) -> Measuring:
    dialogue = dialogue_of(*SAID)
    return Measuring(
        system="toy",
        mode=Mode.TURN,
        dialogue=dialogue,
        speech=Speech(dialogue),
        gone=gone,
        before=before,
        after=after,
        retried=retried,
    )


def target(before: Seen, after: Seen, retried: Seen) -> TargetRow:
    return measured(before, after, retried).target(CODE, Erased())


THERE = seen(memory(SAID[0], "s1-t0"), memory(SAID[2], "s2-t0", memory_id="n"), states={"s1-t0": TurnState.SEARCHABLE})
GONE = seen(memory(SAID[2], "s2-t0", memory_id="n"), states={"s1-t0": TurnState.FORGOTTEN})


def test_what_is_gone_leaves_no_sign() -> None:
    row = target(THERE, GONE, GONE)
    assert (row.left, row.revived, row.blame) == ((), (), None)
    assert row.before.at_k.turns == ("s1-t0",)


def test_each_way_to_stay_is_a_sign_of_its_own() -> None:
    assert target(THERE, THERE, THERE).left == ("turns", "words", "answer", "state")
    told = seen(memory("The gate opens with 5083"), states={"s1-t0": TurnState.FORGOTTEN})
    assert target(THERE, told, GONE).left == ("words", "answer")
    listed = seen(listed=(memory("", "s1-t0"),), states={"s1-t0": TurnState.FORGOTTEN})
    assert target(THERE, listed, GONE).left == ("turns",)
    pending = seen(states={"s1-t0": TurnState.PENDING})
    assert target(THERE, pending, GONE).left == ("state",)


def test_what_only_the_late_retry_shows_has_come_back() -> None:
    row = target(THERE, GONE, THERE)
    assert (row.left, row.revived) == ((), ("turns", "words", "answer", "state"))


def test_only_questions_without_a_forgotten_turn_are_neighbours() -> None:
    after = seen(states={"s1-t0": TurnState.FORGOTTEN, "s2-t0": TurnState.FORGOTTEN})
    cat = Question(question_id="q1", text="?", references=("Bublik",), evidence_turns=("s2-t0",))
    both = Question(question_id="q0", text="?", references=("x",), evidence_turns=("s1-t0", "s2-t0"))
    before = seen(memory(SAID[2], "s2-t0"), states={"s1-t0": TurnState.SEARCHABLE, "s2-t0": TurnState.SEARCHABLE})
    [row] = measured(before, after, after).neighbours([cat, both])
    assert (row.question_id, row.before_at_k.turns, row.after_at_k.turns, row.taken) == (
        "q1",
        ("s2-t0",),
        (),
        ("s2-t0",),
    )


def test_a_turn_whose_listed_memory_is_gone_was_taken_also_if_it_is_listed() -> None:
    states = {"s2-t0": TurnState.SEARCHABLE}
    cat = Question(question_id="q1", text="?", references=("Bublik",), evidence_turns=("s2-t0",))
    before = seen(listed=(memory(SAID[2], "s2-t0"),), states=states)
    [row] = measured(before, seen(listed=(), states=states), GONE).neighbours([cat])
    assert row.taken == ("s2-t0",)


def test_the_same_questions_are_drawn_in_both_languages_and_for_the_same_seed() -> None:
    def names(language: str, seed: int) -> list[str]:
        questions = tuple(
            Question(question_id=f"q{n}", text="?", references=("x",), evidence_turns=("s1-t0",), abstention=n == 3)
            for n in range(12)
        )
        run = RunSettings(data=(), out="x", seed=seed)
        dialogue = dialogue_of(*SAID, language=language, questions=questions)
        targets, others = drawn(dialogue, ForgettingSettings(run=run, targets=5))
        assert len(targets) == 5
        assert {each.question_id for each in (*targets, *others)} == {f"q{n}" for n in range(12)} - {"q3"}
        return [each.question_id for each in targets]

    assert names("en", 0) == names("ru", 0)
    assert len({tuple(names("en", seed)) for seed in range(5)}) > 1
