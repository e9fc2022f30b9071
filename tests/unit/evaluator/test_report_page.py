"""The report as a document: whole, accessible in its structure, with nothing in it that data could break or leak."""

import base64
import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memdock_evaluator.report import write_report
from memdock_evaluator.report.details import CHARACTERS, characters_of
from memdock_evaluator.report.explorer import explorer_of, packed
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.results.rows import MemorySource, Outcome, RetrievedMemory, Row
from memdock_evaluator.summary import RunFilesError, write_summary
from support.html import Document
from support.synthetic_rows import HOSTILE, a_row, a_run


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = a_run(offline=True, hostile=True).write(tmp_path_factory.mktemp("run"))
    write_report(folder)
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html: str) -> Document:
    return Document(html)


def unpack(written: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(written)))


def packs(page: Document, name: str) -> list[Any]:
    """What the scripts hold whose id begins with a name."""
    ids = [attributes.get("id", "") for attributes in page.of("script")]
    return [unpack(script) for own, script in zip(ids, page.scripts, strict=True) if own.startswith(name)]


def test_the_page_needs_nothing_but_itself(html: str, page: Document) -> None:
    fetched = [
        value
        for tag, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action", "data", "poster") and not value.startswith("#")
    ]
    assert fetched == ["data:,", "report.ru.html"], "an icon, and a link that is followed when somebody clicks it"
    assert not re.search(r"@import|url\(|@font-face", html.split("</style>")[0])
    assert "default-src 'none'" in html


def test_hostile_text_stays_text(html: str, page: Document) -> None:
    count = Counter(tag for tag, _ in page.elements)
    assert count["script"] == 4 + 6 * 2, "names, index, words, code, and a part a dialogue and language"
    assert count["img"] == 0
    assert "<script>window.broken" not in html
    assert any(HOSTILE in text for text in packs(page, "explorer-index")[0]["texts"])
    assert any(HOSTILE in text for text in packs(page, "explorer-part")[0]["texts"])


def test_what_is_packed_has_no_character_that_ends_a_script_and_is_the_same_each_time() -> None:
    data = {"text": "</script><!--<script> & \u2028 \u2029"}
    written = packed(data)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", written)
    assert json.loads(gzip.decompress(base64.b64decode(written))) == data
    assert packed(data) == written


def test_a_reader_that_cannot_see_finds_its_way(page: Document) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [link["href"][1:] for link in page.of("a") if "hreflang" not in link]
    labels = [attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes]
    assert {*targets, *labels} <= set(ids)
    count = Counter(tag for tag, _ in page.elements)
    assert count["h1"] == count["main"] == 1
    assert count["table"] == count["caption"] > 5
    assert all(cell.get("scope") for cell in page.of("th"))
    assert page.of("html") == [{"lang": "en"}]
    assert all(drawing.get("aria-label") or drawing.get("aria-hidden") for drawing in page.of("svg"))


def test_the_title_names_what_was_evaluated_and_on_what(page: Document, html: str) -> None:
    assert "<h1>rag-dense, rag-hybrid on own</h1>" in html
    assert "<title>Memory evaluation: rag-dense, rag-hybrid on own</title>" in html
    assert "run synthetic" in page.text


def test_the_headline_shows_figures_intervals_and_baselines(page: Document) -> None:
    assert page.text.count("baseline") > 4
    drawn = [drawing["aria-label"] for drawing in page.of("svg") if "aria-label" in drawing]
    assert "66.0 per cent, 95 per cent interval 61.8 to 70.2" in drawn
    assert "11.8 per cent, no interval" in drawn
    reach = next(line for line in page.of("line") if line["class"] == "reach")
    assert float(reach["x1"][:-1]) == pytest.approx(61.8, abs=0.1)
    assert float(reach["x2"][:-1]) == pytest.approx(70.2, abs=0.1)


def test_offline_figures_say_so_and_the_slices_open_on_what_is_real(page: Document) -> None:
    assert page.text.count("offline rule") > 6
    assert "no measure of answer quality" in page.text
    checked = [choice["value"] for choice in page.of("input") if "checked" in choice]
    assert checked == ["mrr"]


def test_with_models_nothing_is_called_offline(tmp_path: Path) -> None:
    folder = a_run().write(tmp_path)
    write_report(folder)
    page = Document((folder / "report.html").read_text(encoding="utf-8"))
    assert "offline" not in page.text
    assert [choice["value"] for choice in page.of("input") if "checked" in choice] == ["judge_accuracy"]
    assert "gpt-4.1-mini" in page.text


def test_every_row_is_in_the_explorer(page: Document) -> None:
    (index,) = packs(page, "explorer-index")
    ids = [attributes.get("id") for attributes in page.of("script")]
    names = json.loads(page.scripts[ids.index("explorer-names")])
    assert names["systems"][2] == ["baseline:full-context", "full-context"]
    assert names["axes"][1]["values"][0] == ["StaticUser", "StaticUser"]
    assert len(index["rows"]) == len(a_run().rows)
    assert [system for system, *_ in index["rows"]][::204] == [
        "rag-dense",
        "rag-hybrid",
        "baseline:full-context",
        "baseline:refusal",
    ]
    languages = [question["language"] for question in index["questions"]]
    results = Counter(
        result for system, place, _, result, *_ in index["rows"] if (system, languages[place]) == ("rag-dense", "en")
    )
    assert results == {"right": 66, "wrong": 33, "unscored": 1, "system error": 1, "infrastructure error": 1}


def test_what_rows_share_stands_once(page: Document) -> None:
    (index,) = packs(page, "explorer-index")
    assert len(index["questions"]) == 102 * 2, "four systems are asked the same"
    parts = packs(page, "explorer-part")
    assert sorted(place for part in parts for place, _ in part["rows"]) == list(range(len(index["rows"])))
    starts = [part["start"] for part in parts]
    assert starts == [len(index["texts"]) + sum(len(part["texts"]) for part in parts[:n]) for n in range(len(parts))]
    for part in parts:
        for shared in ("memories", "questions"):
            written = [json.dumps(each) for each in part[shared]]
            assert len(written) == len(set(written))


def test_a_memory_is_marked_by_what_it_covers_and_cut_when_long() -> None:
    def memory(rank: int, session: str, turn: str) -> RetrievedMemory:
        source = MemorySource(session_id=session, turn_id=turn)
        return RetrievedMemory(rank=rank, kind="turns", text="x" * 1000, score=0.123456, time=None, sources=(source,))

    row = a_row(memories=(memory(1, "s9", "s9-t0"), memory(2, "s1", "s1-t4"), memory(3, "s1", "s1-t0")))
    part = unpack(explorer_of([row], ["rag-dense"], {}).parts[0])
    ((_, found),) = part["rows"]
    assert [part["hits"][hit] for _, _, hit in found["memories"]] == ["", "session", "turn"]
    assert [score for _, score, _ in found["memories"]] == [0.123] * 3
    assert [each["cut"] for each in part["memories"]] == [1000 - CHARACTERS[0]] * 3
    assert part["texts"].count("x" * CHARACTERS[0]) == 1


def test_memories_are_cut_shorter_where_all_of_them_would_not_find_room() -> None:
    def row(number: int) -> Row:
        texts = [f"{number} {rank} " + "я" * 1000 for rank in range(10)]
        found = (RetrievedMemory(rank=1, kind="turns", text=text, score=None, time=None) for text in texts)
        return a_row(question_id=f"q{number}", memories=tuple(found))

    rows = [row(number) for number in range(10)]
    whole = sum(len(memory.text[:700].encode()) for row in rows for memory in row.memories)
    assert characters_of(rows, whole) == 700
    assert characters_of(rows, whole - 1) == 450
    assert characters_of(rows + rows, whole) == 700, "what stands in several rows counts once"
    assert characters_of(rows, 0) == CHARACTERS[-1]


def test_an_error_shows_its_reason() -> None:
    row = a_row(outcome=Outcome.SYSTEM_ERROR, reason="INTERNAL", detail="the store is gone", answer=None, correct=False)
    found = explorer_of([row], ["rag-dense"], {})
    ((_, _, _, result, answer, *_),) = unpack(found.index)["rows"]
    assert (result, answer) == ("system error", None)
    ((_, entry),) = unpack(found.parts[0])["rows"]
    assert (entry["reason"], entry["detail"]) == ("INTERNAL", "the store is gone")


def test_the_same_run_gives_the_same_page(tmp_path: Path, html: str) -> None:
    folder = a_run(offline=True, hostile=True).write(tmp_path)
    write_report(folder)
    assert (folder / "report.html").read_text(encoding="utf-8") == html


def test_a_summary_is_written_beside_it(tmp_path: Path) -> None:
    folder = a_run().write(tmp_path)
    summary = write_summary(folder)
    assert json.loads((folder / "summary.json").read_bytes()) == summary
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "outcomes.jsonl",
        "summary.json",
        "timings.jsonl",
    ]


def test_differences_are_drawn_with_their_intervals(page: Document) -> None:
    drawn = [drawing["aria-label"] for drawing in page.of("svg") if "aria-label" in drawing]
    assert any(re.fullmatch(r"−1\d\.\d points, 95 per cent interval −\d+\.\d to −\d+\.\d", label) for label in drawn)
    assert "rag-dense − rag-hybrid, ru" in page.text
    assert "full-context − refusal" not in page.text
    assert "No rank intervals (fewer than 20 dialogues: resampling them tests nothing)." in page.text
    assert "full context (full-context); memory systems (rag-dense, rag-hybrid)" in page.text


def test_every_wrong_answer_has_its_place_in_a_bar(page: Document) -> None:
    bars = [bar["aria-label"] for bar in page.of("span") if bar.get("class") == "bar"]
    assert "system error 1, no answer was due 4, not retrieved 29" in bars
    assert "needs --baseline oracle , which this run has not" in page.text


def test_recall_over_k_is_a_curve_a_system(page: Document) -> None:
    lines = [line["points"].split() for line in page.of("polyline") if line["class"].startswith("curve")]
    curves = [points for points in lines if len(points) == 4]
    assert len(curves) == 2 * 2
    assert [point.split(",")[0] for point in curves[0]] == ["0.0", "33.33", "66.67", "100.0"]
    label = next(label for drawing in page.of("svg") if " at 10" in (label := drawing.get("aria-label", "")))
    assert label.startswith("rag-dense: ")


def test_published_rows_are_marked(page: Document) -> None:
    assert page.text.count("not comparable") == 2 * 13
    assert "83.60 ± 0.94 se" in page.text


def test_a_run_without_comparable_parts_has_a_page_all_the_same(tmp_path: Path) -> None:
    run = a_run(dialogues=1)
    rows = tuple(row for row in run.rows if row.system == "baseline:refusal")
    manifest = replace(run.manifest, totals={"baseline:refusal": run.manifest.totals["baseline:refusal"]})
    folder = replace(run, rows=rows, timings=(), manifest=manifest).write(tmp_path)
    write_report(folder)
    text = Document((folder / "report.html").read_text(encoding="utf-8")).text
    assert "No memory system has a wrong answer." in text


def test_a_system_without_rows_is_still_described(tmp_path: Path) -> None:
    run = a_run()
    rows = tuple(row for row in run.rows if row.system == "rag-dense")
    manifest = replace(run.manifest, totals={"rag-dense": run.manifest.totals["rag-dense"]})
    folder = replace(run, rows=rows, timings=(), manifest=manifest).write(tmp_path)
    write_report(folder)
    assert "rag-hybrid" in Document((folder / "report.html").read_text(encoding="utf-8")).text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("outcomes.jsonl", None, r"outcomes.jsonl is not there: finish the run first"),
        ("outcomes.jsonl", b"", r"outcomes.jsonl is empty"),
        ("outcomes.jsonl", b'{"system": "x"}\n', r"outcomes.jsonl, line 1: language: Field required"),
        ("timings.jsonl", b"nonsense\n", r"timings.jsonl, line 1: the line: "),
    ],
)
def test_a_folder_without_a_readable_run_says_what_is_wrong(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    folder = a_run(dialogues=1).write(tmp_path)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(RunFilesError, match=message):
        write_report(folder)
    assert not (folder / "report.html").exists()


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = a_run(dialogues=1).write(tmp_path)
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(ManifestError, match="schema_version is missing, so this is no manifest of memdock-eval"):
        write_report(folder)
