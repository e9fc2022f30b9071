"""From rows to whole points, from axes to slices, from positions to edge and middle."""

from dataclasses import replace

import numpy as np
import pytest

from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.statistics.matrix import Measure, ScoredRow, matrix_of
from memdock_evaluator.statistics.slices import OVERALL, Slice, pairs_of, position_of, relative_position, slices_of


def a_row(
    system: str, language: str, dialogue: int, question: int, correct: bool | None, f1: float | None = None
) -> ScoredRow:
    category = taxonomy.Category(
        semantic="Ordering" if question else "StaticUser",
        scope="multi" if question else "single",
        temporality="atemporal",
    )
    return ScoredRow(
        system=system,
        language=language,
        dialogue_id=f"d{dialogue}",
        question_id=f"q{question}",
        axes=taxonomy.axes(category),
        correct=correct,
        f1=f1,
        position=0.1 if question else 0.5,
    )


ROWS = [
    a_row(system, language, dialogue, question, correct=(dialogue + question) % 2 == 0, f1=0.25 * question)
    for dialogue in (2, 0, 1)
    for question in (1, 0)
    for system in ("b", "a")
    for language in ("ru", "en")
]


def test_a_matrix_is_in_order_whatever_the_rows_order() -> None:
    matrix = matrix_of(ROWS)
    assert (matrix.systems, matrix.languages, matrix.dialogues) == (("a", "b"), ("en", "ru"), ("d0", "d1", "d2"))
    assert matrix.dialogue_of.tolist() == [0, 0, 1, 1, 2, 2]
    assert matrix.accuracy.points.tolist() == [[[1, 0, 0, 1, 1, 0]] * 2] * 2
    assert matrix.accuracy.unit == 1
    assert matrix.accuracy.known.all()
    assert matrix.asked.all()
    again = matrix_of(reversed(ROWS))
    assert again.accuracy.points.tolist() == matrix.accuracy.points.tolist()
    assert again.slices == matrix.slices


def test_f1_is_in_millionths() -> None:
    f1 = matrix_of(ROWS).f1
    assert f1 is not None
    assert f1.unit == 1_000_000
    assert f1.points[0, 0].tolist() == [0, 250_000] * 3
    shares = Measure.shares(np.array([[[1 / 3, np.nan, 1.0]]]))
    assert shares.points.tolist() == [[[333_333, 0, 1_000_000]]]
    assert shares.known.tolist() == [[[True, False, True]]]


def test_a_question_without_a_score_is_not_wrong() -> None:
    rows = [replace(row, correct=None) if (row.system, row.dialogue_id) == ("a", "d0") else row for row in ROWS]
    accuracy = matrix_of(rows).accuracy
    assert accuracy.known[0, :, :2].any() == False  # noqa: E712
    assert accuracy.known.sum() == accuracy.known.size - 4


def test_repeats_are_averaged_in_parts_that_stay_whole() -> None:
    others = [replace(row, correct=not row.correct) for row in ROWS if row.dialogue_id == "d0"]
    three = [replace(row, correct=None) for row in ROWS if row.dialogue_id == "d1"] + [
        replace(row, correct=True) for row in ROWS if row.dialogue_id == "d2" for _ in range(2)
    ]
    accuracy = matrix_of([*ROWS, *others, *three]).accuracy
    # d0 twice, once right; d1 twice, once scored; d2 three times, at least twice right.
    assert accuracy.unit == 6
    assert accuracy.points[0, 0].tolist() == [3, 3, 0, 6, 6, 4]


def test_slices_hold_what_the_axes_say_and_what_the_paper_makes_of_them() -> None:
    matrix = matrix_of(ROWS)
    sizes = {(one.axis, one.value): int(held.sum()) for one, held in zip(matrix.slices, matrix.members, strict=True)}
    assert sizes == {
        ("overall", "all"): 6,
        ("group", "extraction"): 3,
        ("group", "general_reasoning"): 3,
        ("semantic", "StaticUser"): 3,
        ("semantic", "Ordering"): 3,
        ("supergroup", "extraction"): 3,
        ("supergroup", "reasoning"): 3,
        ("reasoning", "general_reasoning"): 3,
        ("scope", "single"): 3,
        ("scope", "multi"): 3,
        ("temporality", "atemporal"): 6,
        ("scope_temporality", "single+atemporal"): 3,
        ("scope_temporality", "multi+atemporal"): 3,
        ("position", "middle"): 3,
        ("position", "edge"): 3,
        ("position_single", "middle"): 3,
    }


@pytest.mark.parametrize(
    ("evidence", "sessions", "relative", "value"),
    [
        ([1], 12, 1 / 24, "edge"),
        ([4], 12, 3.5 / 12, "edge"),
        ([5], 12, 4.5 / 12, "middle"),
        ([8], 12, 7.5 / 12, "middle"),
        ([9], 12, 8.5 / 12, "edge"),
        ([1, 12], 12, 0.5, "middle"),
        ([1, 2, 3], 3, 0.5, "middle"),
        ([2, 3], 6, 1 / 3, "middle"),
        ([1], 1, 0.5, "middle"),
    ],
)
def test_positions_are_the_mean_middle_of_the_evidence(
    evidence: list[int], sessions: int, relative: float, value: str
) -> None:
    found = relative_position(evidence, sessions)
    assert found == pytest.approx(relative)
    assert found is not None
    assert position_of(found) == value


def test_positions_need_evidence_inside_the_dialogue() -> None:
    assert relative_position([], 12) is None
    with pytest.raises(ValueError, match="between 1 and 12"):
        relative_position([13], 12)


def test_pairs_are_the_papers_and_on_axes_of_ones_own_every_pair() -> None:
    assert pairs_of("scope", ["multi", "single"]) == [
        (Slice(axis="scope", value="single"), Slice(axis="scope", value="multi"))
    ]
    assert (
        pairs_of("scope", ["single"]) == pairs_of("semantic", ["Ordering", "UserQA"]) == pairs_of("tier", ["a"]) == []
    )
    assert [(one.value, other.value) for one, other in pairs_of("tier", ["a", "b", "c"])] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert pairs_of("city", list("abcde")) == []


def test_slices_need_a_position_for_every_question() -> None:
    with pytest.raises(ValueError, match="shorter"):
        slices_of([{}, {}], [None])


def test_nothing_is_no_matrix() -> None:
    with pytest.raises(ValueError, match="nothing to analyse"):
        matrix_of([])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dialogue_of": np.array([0, 1, 0, 1, 2, 2])}, "stand together"),
        ({"dialogue_of": np.array([0, 0, 0, 2, 2, 2])}, "name every dialogue"),
        ({"slices": (Slice(axis="a", value="b"),), "members": np.ones((1, 6), dtype=np.bool_)}, "of all questions"),
        ({"members": np.ones((1, 6), dtype=np.bool_)}, "slices x questions"),
        ({"systems": ("a",)}, "systems x languages x questions"),
        ({"asked": np.ones((2, 5), dtype=np.bool_)}, "languages x questions"),
        ({"asked": np.zeros((2, 6), dtype=np.bool_)}, "not asked"),
    ],
)
def test_a_matrix_that_does_not_fit_together_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(matrix_of(ROWS), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("points", "known", "message"),
    [([2], [True], "between 0 and the unit"), ([-1], [True], "between 0"), ([1], [False], "not known")],
)
def test_points_beyond_their_unit_or_without_a_score_are_refused(
    points: list[int], known: list[bool], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Measure(points=np.array([[points]]), unit=1, known=np.array([[known]]))


def test_overall_is_first() -> None:
    assert matrix_of(ROWS).slices[0] == OVERALL
