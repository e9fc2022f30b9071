"""A run's spaces and folders: valid names, and no two ids that share one."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memdock_evaluator.results.names import safe_name
from memdock_evaluator.run.space import space_id

SPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}")


@given(st.text(min_size=1, max_size=300), st.sampled_from(["ru", "en", "zh"]))
def test_a_space_has_the_form_of_the_protocol(dialogue_id: str, language: str) -> None:
    assert SPACE.fullmatch(space_id("0123456789", dialogue_id, language))


@given(st.text(min_size=1), st.text(min_size=1))
def test_two_ids_never_share_a_name(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (one == other)


def test_names_that_look_alike_stay_apart() -> None:
    alike = ["a/b", "a_b", "a b", "A_b", "a_b~", "..", ".", "conv-26", "conv_26", "é", "x" * 49, "x" * 50]
    assert len({safe_name(name) for name in alike}) == len(alike)
    assert safe_name("conv-26") == "conv-26"
    assert space_id("r", "0", "ru") == "eval-r-0-ru"


def test_languages_and_runs_never_share_a_space() -> None:
    spaces = {space_id(run, "0", language) for run in ("a", "b") for language in ("ru", "en")}
    assert len(spaces) == 4
