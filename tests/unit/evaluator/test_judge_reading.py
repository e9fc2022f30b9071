"""How a judge's reply becomes a verdict: only what is unmistakable counts, and nothing else is wrong or right."""

import pytest

from memdock_evaluator.answer.judge import Verdict, read_json, read_pollux
from memdock_evaluator.answer.models import without_thoughts


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ('{"verdict": 2, "reason": "same"}', 2),
        ('```json\n{"reason": "a {brace}", "verdict": 0}\n```', 0),
        ('The label is {"verdict": "3"}.', 3),
        ('{"verdict": 1}\n{"verdict": 1}', 1),
        ('{"a": 1} {"verdict": 1}', 1),
        ('{"verdict": 2} {"verdict": 0}', None),
        ('{"verdict": 4}', None),
        ('{"verdict": true}', None),
        ('{"verdict": 2.0}', None),
        ('{"verdict": null}', None),
        ('{"verdict": [2]}', None),
        ('{"label": 2}', None),
        ("2", None),
        ("correct", None),
        ("", None),
        ('{"verdict": 2', None),
        ("{" * 5000, None),
    ],
)
def test_a_json_reply(reply: str, label: int | None) -> None:
    assert read_json(reply)[0] == label


def test_the_reason_is_kept_where_it_is_text() -> None:
    assert read_json('{"verdict": 2, "reason": "same"}') == (2, "same")
    assert read_json('{"verdict": 2, "reason": 5}') == (2, "")


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("Ответ верен. [RESULT] 2 [END]", 2),
        ("[RESULT]0[END]", 0),
        ("[RESULT] 3 [END] [RESULT] 3 [END]", 3),
        ("[RESULT] 1 [END] [RESULT] 2 [END]", None),
        ("[RESULT] 7 [END]", None),
        ("[RESULT] 22 [END]", None),
        ("[RESULT] 2", None),
        ("2", None),
    ],
)
def test_a_pollux_reply(reply: str, label: int | None) -> None:
    assert read_pollux(reply) == (label, "")


def test_thoughts_are_no_part_of_a_reply() -> None:
    assert without_thoughts('<think>{"verdict": 0}?</think>\n{"verdict": 2}') == '{"verdict": 2}'
    assert without_thoughts('hm {"verdict": 0} </think> {"verdict": 2}') == '{"verdict": 2}'
    assert without_thoughts('<think>{"verdict": 2} and no end') == ""
    assert without_thoughts(" plain ") == "plain"


def test_labels_0_and_1_are_incorrect_2_and_3_correct_and_none_is_neither() -> None:
    assert [Verdict(label=label).correct for label in (0, 1, 2, 3, None)] == [False, False, True, True, None]
