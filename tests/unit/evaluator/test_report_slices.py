"""A slice's n is that of the figures beside it: a question without evidence to be found is in no retrieval figure."""

from memdock_evaluator.report.tables import SliceRow


def test_n_and_few_go_by_the_measure() -> None:
    row = SliceRow(value="adversarial", n_questions=272, n_retrieval=2, cells=())
    assert {measure: row.n(measure) for measure in ("judge_accuracy", "f1", "mrr", "recall_at_k")} == {
        "judge_accuracy": 272,
        "f1": 272,
        "mrr": 2,
        "recall_at_k": 2,
    }
    assert row.few("mrr")
    assert not row.few("f1")
