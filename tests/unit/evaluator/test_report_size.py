"""The page of a run as large as the paper's: 13 systems, 1,543 questions, 2 languages, texts that pack as real ones."""

import gzip

import pytest

from memdock_evaluator.report.explorer import explorer_of
from support.natural_text import texts
from support.paper_rows import DIALOGUE_TEXTS, SYSTEMS, a_paper_run
from support.synthetic_rows import LANGUAGES

REAL_BITS = {"en": 2.74, "ru": 3.96}
"""Of a character in gzip, measured on pairs of turns of LoCoMo and of GigaMemory."""

MEGABYTES, OF_THE_PAGE = 15, 1
"""The most that a page may have, and what it has beside the questions."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_texts_pack_no_better_than_real_ones(language: str) -> None:
    found = texts(language, number=100, characters=1500)
    assert len(set(found)) == 100
    assert found == texts(language, number=100, characters=1500)
    packed = gzip.compress("\n".join(found).encode())
    assert 8 * len(packed) / sum(map(len, found)) >= REAL_BITS[language]


@pytest.mark.slow
def test_the_questions_of_a_run_of_the_papers_size_find_room() -> None:
    own = {language: texts(language, number=85 * DIALOGUE_TEXTS, characters=1700) for language in LANGUAGES}
    found = explorer_of(a_paper_run(texts=own).rows, list(SYSTEMS), {})
    assert len(found.parts) == 85 * 2
    assert len(found.index) + sum(map(len, found.parts)) <= (MEGABYTES - OF_THE_PAGE) * 1_000_000
