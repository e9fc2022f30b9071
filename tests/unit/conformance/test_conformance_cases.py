"""The cases as data, and the README that tells them."""

import json
import tomllib
from pathlib import Path

import pytest

from memdock.conformance.case import Level, Need
from memdock.conformance.catalogue import CASES, GROUPS, choose
from memdock.conformance.known import KnownFailure, known_failure, read_known_failures
from memdock.conformance.responders import read_responders
from memdock.types import Feature
from support.conformance_readme import README, with_table

COUNTS = {"T": 10, "I": 7, "O": 2, "E": 7, "R": 8, "F": 8, "X": 4, "S": 4, "P": 8, "G": 8}


def test_every_check_of_the_list_is_a_case() -> None:
    """Ids are stable: vendors name them in files of known failures."""
    bases = {case.id.partition(".")[0] for case in CASES}
    assert bases == {f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)}
    assert [*GROUPS] == [*COUNTS]
    assert len({case.id for case in CASES}) == len(CASES)


def test_the_levels_are_what_the_cases_say() -> None:
    for case in CASES:
        assert (case.level is Level.GATEWAY) == (case.letter == "G") == (Need.GATEWAY in case.needs)
        assert (case.level is Level.FEATURE) == bool(case.features)
        assert case.proves.endswith(".")
        assert not ({Need.LAUNCH, Need.STORE, Need.COMPONENT} & {*case.needs}) or case.alone
    looked = {feature for case in CASES for feature in case.features}
    assert set(Feature) - looked == {Feature.VALIDITY}


def test_patterns_choose() -> None:
    assert [case.id for case in choose(["T9"])] == ["T9", "T9.models"]
    assert [case.id for case in choose(["F1.restart", "X*"])] == ["F1.restart", "X1", "X2", "X3", "X4"]
    assert {case.level for case in choose(core=True)} == {Level.MUST}
    assert not any(case.needs for case in choose(core=True))
    assert choose() == list(CASES)
    with pytest.raises(ValueError, match="there is no such case"):
        choose(["T1", "T99"])


def test_the_readme_tells_every_check_and_its_examples_can_be_read(tmp_path: Path) -> None:
    text = README.read_text()
    assert with_table(text) == text, "run: PYTHONPATH=tests python -m support.conformance_readme"
    responders, known = (block.partition("```")[0] for block in text.split("```toml\n")[1:])
    (tmp_path / "responders.toml").write_text(responders)
    (tmp_path / "known.toml").write_text(known)
    respond = read_responders(tmp_path / "responders.toml")
    prompt = {"messages": [{"role": "user", "content": 'Extract the facts from this message: I say "hi"'}]}
    assert respond(prompt, []) == '{"facts": ["I say \\"hi\\""]}'
    assert respond(prompt, ["HI"]) == '{"facts": []}'
    assert respond({"messages": [{"role": "user", "content": [{"text": "else"}]}]}, []) == "else"
    many = {"messages": [{"role": "user", "content": "## New Messages\nuser: one\nuser: two\n\n## Done"}]}
    assert json.loads(respond(many, [])) == {"memory": [{"id": "0", "text": "one"}, {"id": "1", "text": "two"}]}
    assert json.loads(respond(many, ["one"])) == {"memory": [{"id": "0", "text": "two"}]}
    assert json.loads(respond(many, ["one", "two"])) == {"memory": []}
    (entry,) = read_known_failures(tmp_path / "known.toml", CASES)
    assert (entry.id, entry.face) == ("E4", "http")


def test_a_known_failure_is_of_its_face() -> None:
    (case,) = choose(["E4"])
    entries = [KnownFailure(id="E4", face="http", reason="x"), KnownFailure(id="T1", reason="y")]
    assert known_failure(entries, case, "http") is entries[0]
    assert known_failure(entries, case, "grpc") is None
    assert known_failure(entries, choose(["T1"])[0], "grpc") is entries[1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[known-failure]]\nid = "T1"', "known-failure 1: reason is missing"),
        ('[[known-failure]]\nid = "T77"\nreason = "x"', "there is no case T77"),
        ('[[known-failure]]\nid = "T1"\nreason = "x"\nfaces = "grpc"', "faces is not known"),
        ('[[known-failure]]\nid = "T1"\nreason = "x"\nface = "tcp"', "face must be one of grpc, http"),
        ('[[known-failure]]\nid = "T1"\nreason = ""', "reason must be text"),
        ('[known-failure]\nid = "T1"', "with two brackets"),
        ('[[failure]]\nid = "T1"', "failure is not known"),
        ("[[known-failure", "known.toml"),
    ],
)
def test_a_bad_file_of_known_failures_is_told(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"known\.toml") as raised:
        read_known_failures(path, CASES)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[responder]]\nprompt = 'x'", "responder 1: answer is missing"),
        ("[[responder]]\nprompt = '('\nanswer = ''", "prompt is no regular expression"),
        ("[[responder]]\nprompt = 'x'\neach = '('\nitem = ''\nanswer = ''", "each is no regular expression"),
        ("[[responder]]\nprompt = 'x'\neach = 'y'\nanswer = ''", "item is missing"),
        ("[[responder]]\nprompt = 'x'\nanswer = ''\nplain = 'yes'", "plain must be bool"),
        ("[[responder]]\nprompt = 'x'\nanswer = ''\nanswr = ''", "answr is not known"),
        ("", "must hold tables"),
    ],
)
def test_a_bad_file_of_responders_is_told(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "responders.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"responders\.toml") as raised:
        read_responders(path)
    assert sentence in str(raised.value)


def test_the_reference_has_no_known_failure() -> None:
    path = Path(__file__).parents[3] / "adapters/pgvector/conformance.toml"
    assert read_known_failures(path, CASES) == []
    assert tomllib.loads(path.read_text()) == {}
