"""The Russian report says in Russian all that is not a name."""

from dataclasses import replace
from pathlib import Path

import pytest

from memdock.types import Feature
from memdock_evaluator.attribution import Failure
from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.leaks.suite import NO_FORGET, NO_RESTART
from memdock_evaluator.report import write_report
from memdock_evaluator.report.explorer import RESULTS
from memdock_evaluator.results.rows import Stage
from memdock_evaluator.run.selection import ANY
from memdock_evaluator.summary.axes import VALUES, slice_name, title
from memdock_evaluator.tables.published import published
from memdock_evaluator.words.language import Words
from memdock_evaluator.words.names import feature_name
from support.paper_rows import a_paper_run
from support.russian import english_left
from support.synthetic_rows import Run, a_run

RUSSIAN = Words("ru")


def names(run: Run) -> list[str]:
    """What a run and the paper call their systems."""
    plan = run.manifest.plan
    systems = [name for system in plan.systems for name in (system.name, system.name.removeprefix("baseline:"))]
    methods = [row.method for row in published(run.manifest)]
    models = [name for judge in plan.judges.values() for name in (judge.model.model, judge.model.form)]
    return [*systems, *methods, *plan.judges, *models, run.manifest.run_id, plan.data.format, "models.example"]


def russian_page(run: Run, folder: Path) -> str:
    write_report(run.write(folder))
    return (folder / "report.ru.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("offline", [True, False])
def test_no_english_sentence_is_left(tmp_path: Path, offline: bool) -> None:
    run = a_run(offline=offline)
    assert english_left(russian_page(run, tmp_path), *names(run)) == []


def test_no_english_is_left_in_sections_that_only_some_runs_have(tmp_path: Path) -> None:
    run = a_paper_run(dialogues=6, questions=102)
    assert english_left(russian_page(run, tmp_path), *names(run)) == []


def test_a_run_that_did_not_finish_says_so_in_russian(tmp_path: Path) -> None:
    run = a_run(dialogues=1)
    page = russian_page(replace(run, manifest=replace(run.manifest, finished=None)), tmp_path)
    assert "не завершён" in page
    assert english_left(page, *names(run)) == []


def test_every_name_of_the_taxonomy_and_of_the_code_has_a_russian_one() -> None:
    slices = [(axis, value) for axis, values in VALUES.items() for value in values]
    slices += [("subcategory", value) for values in taxonomy.SUBTYPES.values() for value in values]
    slices += [("subsubcategory", value) for value in taxonomy.DATE_SUBTYPES]
    shown = [*(slice_name(*each) for each in slices), *map(title, taxonomy.AXES), *RESULTS, *Failure, *Stage]
    assert [name for name in shown if RUSSIAN.word(name) == name] == []


def test_what_systems_declare_and_what_a_run_was_not_told_have_russian_words() -> None:
    assert [name for name in map(feature_name, Feature) if RUSSIAN.word(name) == name] == []
    assert feature_name("NO_MEMORY") == "leaving out turns worth no memory"
    assert [why for why in (NO_RESTART, NO_FORGET, ANY) if RUSSIAN.word(why) == why] == []


def test_a_tag_of_ones_own_is_shown_as_it_stands() -> None:
    assert RUSSIAN.word(title("user_tier")) == "User tier"
    assert RUSSIAN.word(slice_name("user_tier", "none")) == "none"


def test_english_would_be_found() -> None:
    page = (
        '<p>Да <code>no words</code></p><p lang="en">Not ours</p><p title="An English title">Полнота@10 rag-dense</p>'
    )
    assert english_left(page) == ["An English title"]
    assert english_left("<p>Some words</p>") == ["Some words"]
