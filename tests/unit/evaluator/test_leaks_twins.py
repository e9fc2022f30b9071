"""Twins differ in their canaries alone, canaries in everything; a trial is leaked, void or neither."""

import re
from itertools import permutations

import pytest

from memdock_evaluator.leaks.asking import Seen
from memdock_evaluator.leaks.rows import Moment, TrialRow, Void
from memdock_evaluator.leaks.trials import Canaries, Met, Pairing, trials
from memdock_evaluator.leaks.twins import LANGUAGES, Pair, Twin, make_pairs, shows

PAIRS = make_pairs(("ru", "en"), 5, seed=3)
TWINS = [twin for pair in PAIRS for twin in (pair.first, pair.second)]


def told(twin: Twin) -> str:
    return "\n".join(turn.text for turn in twin.dialogue.turns)


def test_twins_say_the_same_but_for_their_canaries() -> None:
    for pair in PAIRS:
        first, second = told(pair.first), told(pair.second)
        for mine, other in zip(pair.first.facts, pair.second.facts, strict=True):
            assert (mine.name, mine.question, mine.turn_id) == (other.name, other.question, other.turn_id)
            first, second = first.replace(mine.value, "@"), second.replace(other.value, "@")
        assert first == second
        assert first.count("@") == len(pair.first.facts) == 6


def test_a_canary_stands_in_one_turn_of_the_run_and_holds_no_other() -> None:
    values = [fact.value for twin in TWINS for fact in twin.facts]
    for one, other in permutations(values, 2):
        assert not shows(one, [other])
    for twin in TWINS:
        for fact in twin.facts:
            said = [turn.turn_id for turn in twin.dialogue.turns if shows(fact.value, [turn.text])]
            assert said == [fact.turn_id]
            assert not shows(fact.value, [told(other) for other in TWINS if other is not twin])


def test_the_seed_decides() -> None:
    assert make_pairs(("ru", "en"), 5, seed=3) == PAIRS
    assert {f.value for p in make_pairs(("ru",), 5, seed=4) for f in p.first.facts}.isdisjoint(
        f.value for t in TWINS for f in t.facts
    )


def test_both_languages_have_the_same_facts_in_their_own_letters() -> None:
    names = [[fact.name for fact in words.facts] for words in LANGUAGES.values()]
    assert names[0] == names[1]
    cyrillic = [bool(re.fullmatch(r"[а-яА-Я]+", f.value)) for t in TWINS for f in t.facts if not f.value.isdigit()]
    languages = [t.language == "ru" for t in TWINS for f in t.facts if not f.value.isdigit()]
    assert cyrillic == languages


@pytest.mark.parametrize(
    "text", ["it is 483920.", "it is 483 920", "483,920 it is", "483-920", "№483920", "483\u2009920"]
)
def test_a_number_is_seen_however_it_is_written(text: str) -> None:
    assert shows("483920", [text])


@pytest.mark.parametrize(
    ("value", "text", "seen"),
    [
        ("Вегодемо", "кот ВЕГОДЕМО", True),
        ("Вегодемо", "кот Вегодёмо", True),
        ("Vegodemo", "Vegodemo's cat", True),
        ("Vegodemo", "Vegodem", False),
        ("483920", "4839201", True),
        ("483920", "48392", False),
        ("483920", "48 cats and 3920 dogs", False),
    ],
)
def test_a_word_is_seen_in_any_case(value: str, text: str, seen: bool) -> None:
    assert shows(value, [text]) == seen


PAIR = PAIRS[0]
CANARIES = Canaries(PAIRS)
ALL = frozenset(fact.name for fact in PAIR.first.facts)


def shown_to(twin: Twin, *, without: str = "", foreign: str = "", by_value: str = "", listed: str = "") -> Seen:
    """A space that brings its own canaries, and what else is given to every question, query and list."""
    return Seen(
        by_question={fact.name: ("" if fact.name == without else fact.value, foreign) for fact in twin.facts},
        by_value={fact.name: (by_value,) for fact in twin.facts},
        listed=(listed,),
        faults={},
    )


def rows_of(
    first: Seen, second: Seen, moment: Moment = Moment.REST, before: Pairing | None = None, pair: Pair = PAIR
) -> list[TrialRow]:
    """`Pair.ways` asks the second first."""
    found, _ = trials(
        "toy", moment, pair, (second, first), CANARIES, before=before or Pairing(first=ALL, second=ALL), met=Met()
    )
    return found


def test_separate_spaces_leak_nothing() -> None:
    rows = rows_of(shown_to(PAIR.first), shown_to(PAIR.second))
    assert len(rows) == 12
    assert not any(row.leaked_by or row.void or row.taken for row in rows)


def test_a_leak_is_told_by_its_way_its_fact_and_its_owner() -> None:
    cat = next(fact for fact in PAIR.first.facts if fact.name == "cat")
    for way in ("question", "value", "list"):
        given = {"question": "foreign", "value": "by_value", "list": "listed"}[way]
        rows = rows_of(shown_to(PAIR.first), shown_to(PAIR.second, **{given: f"the cat {cat.value}"}))
        [leaked] = [row for row in rows if row.leaked_by]
        assert (leaked.asker, leaked.owner, leaked.fact) == ("0-b", "0-a", "cat")
        assert (leaked.leaked_by, leaked.leaked_from) == ((way,), ("ru/0-a",))


def test_a_stranger_counts_as_much_as_the_twin() -> None:
    boat = next(fact for fact in PAIRS[-1].second.facts if fact.name == "boat")
    [leaked] = [
        row for row in rows_of(shown_to(PAIR.first, foreign=boat.value), shown_to(PAIR.second)) if row.leaked_by
    ]
    assert (leaked.asker, leaked.leaked_from) == ("0-a", ("en/4-b",))


def test_a_canary_that_its_own_user_does_not_find_voids_the_trial_unless_it_leaked() -> None:
    rows = rows_of(shown_to(PAIR.first, without="cat"), shown_to(PAIR.second))
    assert [(row.asker, row.fact) for row in rows if row.void is Void.NOT_FOUND] == [("0-b", "cat")]
    cat = next(fact for fact in PAIR.first.facts if fact.name == "cat")
    rows = rows_of(shown_to(PAIR.first, without="cat"), shown_to(PAIR.second, foreign=cat.value))
    assert [row.fact for row in rows if row.leaked_by] == ["cat"]
    assert not any(row.void for row in rows)


def test_after_an_erasure_ones_own_is_foreign_and_what_was_found_before_decides() -> None:
    nothing = Seen(by_question={}, by_value={}, listed=(), faults={})
    for moment in (Moment.FORGET, Moment.RESET):
        assert not any(row.leaked_by or row.void for row in rows_of(nothing, shown_to(PAIR.second), moment))
        back = rows_of(shown_to(PAIR.first), shown_to(PAIR.second), moment)
        assert {(row.asker, row.leaked_from) for row in back if row.leaked_by} == {("0-a", ("ru/0-a",))}
        never = rows_of(nothing, shown_to(PAIR.second), moment, Pairing(first=ALL - {"cat"}, second=ALL))
        assert [(row.asker, row.fact) for row in never if row.void] == [("0-b", "cat")]


def test_what_the_other_loses_by_an_erasure_was_taken() -> None:
    nothing = Seen(by_question={}, by_value={}, listed=(), faults={})
    rows = rows_of(nothing, shown_to(PAIR.second, without="cat"), Moment.RESET)
    assert [(row.asker, row.fact) for row in rows if row.taken] == [("0-b", "cat")]
    at_rest = rows_of(shown_to(PAIR.first), shown_to(PAIR.second, without="cat"))
    assert not any(row.taken for row in at_rest)
