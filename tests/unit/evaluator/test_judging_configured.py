"""The file of judges: what it may say, and how a mistake in it is named."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from memdock_evaluator.answer.endpoint import NamedJudge
from memdock_evaluator.judging.configured import check_served, read_judges
from memdock_evaluator.run.settings import SettingsError

R1 = "- {name: r1, url: https://models.example/v1, model: deepseek-r1"


def read(folder: Path, text: str) -> Sequence[NamedJudge]:
    path = folder / "judges.yaml"
    path.write_text(text)
    return read_judges(path, timeout_s=5.0, tries=2, concurrency=3)


def test_a_judge_with_all_that_can_be_said_of_it(tmp_path: Path) -> None:
    (tmp_path / "r1.key").write_text("secret\n")
    (judge,) = read(
        tmp_path,
        R1 + ", languages: [en], key_file: r1.key, prompt: 'mine/{lang}.txt', rubric: r.yaml, temperature: 0.6,"
        " seed: 7, tries: 5}",
    )
    endpoint = judge.settings.endpoint
    assert endpoint is not None
    assert (endpoint.model, endpoint.key, endpoint.temperature, endpoint.tries) == ("deepseek-r1", "secret", 0.6, 2)
    assert (endpoint.timeout_s, endpoint.concurrency) == (5.0, 3)
    assert judge.settings.prompt == str(tmp_path / "mine/{lang}.txt")
    assert (judge.settings.form, judge.settings.seed, judge.settings.verdict_tries) == ("json", 7, 5)
    assert (judge.serves("en"), judge.serves("ru")) == (True, False)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (R1 + ", temperature: 3}", "judge 1, temperature: Input should be less than or equal to 2"),
        (R1 + "}\n- {name: b, url: ftp://x, model: m}", "judge 2, url: String should match"),
        (R1 + ", form: xml}", "judge 1, form: Input should be 'json' or 'pollux'"),
        (R1 + ", tempreature: 1}", "judge 1, tempreature: Extra inputs are not permitted"),
        (R1 + ", key_file: none}", "r1, key_file: the key cannot be read from none"),
        (R1 + "}\n" + R1 + "}", "two judges are named 'r1'"),
        ("[]", "the file: List should have at least 1 item"),
        ("- [", "the judges cannot be read"),
    ],
)
def test_a_mistake_is_named_by_judge_and_field(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text)
    assert sentence in str(caught.value)


def test_a_language_without_a_judge_is_told(tmp_path: Path) -> None:
    judges = read(tmp_path, R1 + ", languages: [en]}")
    check_served(judges, ["en"])
    with pytest.raises(SettingsError, match="no judge serves ru"):
        check_served(judges, ["en", "ru"])
