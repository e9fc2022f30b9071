"""Words to terms."""

import unicodedata
from concurrent.futures import ThreadPoolExecutor

from memdock_pgvector.terms import count_terms


def test_stems_are_chosen_by_script() -> None:
    assert count_terms("cats, CAT") == {"cat": 2}
    assert count_terms("кошки Кошка кошкой") == {"кошк": 3}
    assert count_terms("Встреча on Friday в 15:30") == count_terms("встречи on fridays в 15 30")


def test_io_and_yo_are_one_letter() -> None:
    assert count_terms("ёлка") == count_terms("елка")


def test_blobs_are_cut_and_signs_are_no_words() -> None:
    assert count_terms("x" * 100_000) == {"x" * 64: 1}
    assert count_terms("!? — 🙂 …") == {}


def test_threads_do_not_share_a_stemmer() -> None:
    text = "running runners ran бегущие бегуны " * 200
    with ThreadPoolExecutor(4) as pool:
        assert set(map(str, pool.map(count_terms, [text] * 16))) == {str(count_terms(text))}


def test_one_way_of_writing_a_word_finds_the_others() -> None:
    for one, other in (("чай йод ёлка", unicodedata.normalize("NFD", "ЧАЙ йод Ёлка")), ("fine Straße", "ﬁne STRASSE")):
        assert one != other
        assert count_terms(one) == count_terms(other)
