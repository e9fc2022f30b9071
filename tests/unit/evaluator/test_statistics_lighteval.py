"""F1 beside Lighteval's formula as the paper describes it: sets of words, no normalisation, best of the references."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdock_evaluator.scores import token_f1

TEXTS = st.lists(st.sampled_from(["Осло", "Осло.", "осло", "кот", "и", "cat", "Cat"]), max_size=6).map(" ".join)


def lighteval(answer: str, reference: str) -> float:
    """`F1_score.compute_one_item` with `strip_strings` and no normalisation: precision and recall of bags as sets."""
    gold, found = set(reference.split()), set(answer.split())
    common = len(gold & found)
    if not common:
        return 0.0
    precision, recall = common / len(found), common / len(gold)
    return 2 * precision * recall / (precision + recall)


@given(answer=TEXTS, references=st.lists(TEXTS, min_size=1, max_size=3))
def test_it_is_the_best_f1_of_sets_of_words(answer: str, references: list[str]) -> None:
    assert token_f1(answer, references) == pytest.approx(max(lighteval(answer, one) for one in references))
