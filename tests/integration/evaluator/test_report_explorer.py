"""The question explorer in a real browser, by mouse and by keyboard: what it shows is what the rows hold."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from memdock_evaluator.report import write_report
from memdock_evaluator.report.explorer import result
from memdock_evaluator.results.rows import FurtherVerdict, Row
from support.browser import CHROMIUM, Page
from support.report_page import opened
from support.russian import english_left
from support.synthetic_rows import a_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)"),
]

ROWS = a_run(hostile=True).rows
FOUND = "document.getElementById('found').textContent"
OPENED = "Boolean(document.querySelector('#list .detail:not([hidden]) > *'))"
FOCUS = "document.activeElement.closest('[data-key]')?.dataset.key"
ADDRESS = "decodeURIComponent(location.hash.replaceAll('+', ' '))"
SHOWN = """(() => {
  const more = document.getElementById('more');
  while (!more.hidden) more.click();
  return [...document.querySelectorAll('#list > li')].map((item) => item.dataset.key);
})()"""


def key(row: Row) -> str:
    return "/".join(map(str, row.key))


def keys(wanted: Callable[[Row], bool]) -> set[str]:
    return {key(row) for row in ROWS if wanted(row)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = a_run(hostile=True).write(tmp_path_factory.mktemp("run"))
    write_report(folder)
    return folder


@pytest.fixture
async def page(folder: Path, tmp_path: Path) -> AsyncIterator[Page]:
    async with opened(folder, tmp_path / "profile") as page:
        yield page
        assert page.problems == []
        assert all(url.startswith("file://") for url in page.requests)


async def focus(page: Page, name: str) -> None:
    await page.run(f"document.querySelector('#filters [name=\"{name}\"]').focus()")


async def choose(page: Page, name: str, value: str) -> None:
    """With the arrow keys, as somebody without a mouse would."""
    await focus(page, name)
    await page.press("Home")
    for _ in range(40):
        if await page.run("document.activeElement.value") == value:
            return
        await page.press("ArrowDown")
    raise AssertionError(f"{name} has no {value}")


async def write(page: Page, text: str) -> None:
    await focus(page, "text")
    await page.run("document.activeElement.select()")
    await page.write(text)


@pytest.mark.parametrize("name", ["system", "language", "result", "axis:semantic"])
async def test_every_value_of_a_filter_narrows_to_its_rows(page: Page, name: str) -> None:
    await every_value(page, name)


@pytest.mark.parametrize("axis", ["group", "scope", "temporality", "scope_temporality", "temporal_expression"])
async def test_every_slice_of_every_axis_narrows_to_its_rows(page: Page, axis: str) -> None:
    await page.click("#filters summary")
    await every_value(page, f"axis:{axis}")


async def every_value(page: Page, name: str) -> None:
    def value_of(row: Row) -> Any:
        if name.startswith("axis:"):
            return row.axes.get(name.removeprefix("axis:"))
        return result(row) if name == "result" else getattr(row, name)

    await focus(page, name)
    values = {value_of(row) for row in ROWS} - {None}
    seen = set()
    for _ in values:
        await page.press("ArrowDown")
        value = await page.run("document.activeElement.value")
        seen.add(value)
        assert set(await page.run(SHOWN)) == keys(lambda row: value_of(row) == value)  # noqa: B023
        await focus(page, name)
    assert seen == values


async def test_each_filter_is_there_once_and_has_a_label(page: Page) -> None:
    axes = {axis for row in ROWS for axis in row.axes}
    names = await page.run("[...document.querySelectorAll('#filters select, #filters input')].map((f) => f.name)")
    assert sorted(names) == sorted(["system", "language", "result", "text", *(f"axis:{axis}" for axis in axes)])
    labels = "[...document.querySelectorAll('#filters select, #filters input')].map((f) => f.labels[0].firstChild.data)"
    assert all(label.strip() for label in await page.run(labels))


async def test_filters_work_together_and_are_reset(page: Page) -> None:
    await choose(page, "system", "rag-dense")
    await choose(page, "language", "en")
    await choose(page, "result", "wrong")
    await choose(page, "axis:semantic", "Abstention")
    expected = keys(
        lambda row: (
            (row.system, row.language, result(row), row.axes["semantic"]) == ("rag-dense", "en", "wrong", "Abstention")
        )
    )
    assert expected
    assert set(await page.run(SHOWN)) == expected
    assert await page.run(FOUND) == f"{len(expected)} of 816 rows"
    await page.click("#clear")
    assert await page.run(FOUND) == "816 of 816 rows"
    assert await page.run("location.hash") == "#questions"


async def test_text_is_looked_for_in_question_reference_and_answer_whatever_its_case(page: Page) -> None:
    for text in ("datEextraction?", "KAZAN", "do not know", "no such words"):
        await write(page, text)
        expected = keys(
            lambda row: any(
                text.lower() in each.lower()  # noqa: B023
                for each in (row.question, *row.references, row.answer or "")
            )
        )
        assert set(await page.run(SHOWN)) == expected


async def test_a_question_is_found_and_read_by_keyboard_alone(page: Page) -> None:
    await choose(page, "result", "right")
    first = await page.run("document.querySelector('#list > li').dataset.key")
    second = await page.run("document.querySelectorAll('#list > li')[1].dataset.key")
    await focus(page, "text")
    await page.press("ArrowDown")
    assert await page.run(FOCUS) == first
    await page.press("ArrowDown")
    assert await page.run(FOCUS) == second
    await page.press("ArrowUp")
    await page.press("Enter")
    button = "document.querySelector('#list .question')"
    assert await page.run(f"{button}.getAttribute('aria-expanded')") == "true"
    assert await page.run(f"getComputedStyle({button}).outlineStyle") == "solid"
    await page.press("Tab")
    assert await page.run("document.activeElement.textContent") == "Link to this question"
    await page.press("Escape")
    assert await page.run(f"{button}.getAttribute('aria-expanded')") == "false"
    assert await page.run(FOCUS) == first
    await page.press("End")
    assert await page.run(FOCUS) == await page.run("[...document.querySelectorAll('#list > li')].at(-1).dataset.key")
    await page.press("ArrowDown")
    assert await page.run("document.querySelectorAll('#list > li').length") == 80
    await page.press("Home")
    await page.press("ArrowUp")
    assert await page.run("document.activeElement.name") == "text"


async def test_an_open_question_shows_all_of_its_row(page: Page) -> None:
    await choose(page, "result", "right")
    await page.click("#list .question")
    await page.until(OPENED)
    shown = await page.run("document.querySelector('#list .detail').innerText")
    first = await page.run("document.querySelector('#list > li').dataset.key")
    row = next(row for row in ROWS if key(row) == first)
    for part in ("Right answers", "Wednesday", "2 October 2024, 10:00 UTC", "2 of 3: right", "10 memories retrieved"):
        assert part in shown
    for part in (
        row.question,
        row.answer or "",
        *row.references,
        row.evidence[0].text,
        *(each.text for each in row.memories),
    ):
        assert await page.run(f"document.querySelector('#list > li').textContent.includes({part!r})"), part
    assert await page.run("document.querySelectorAll('#list .evidence li').length") == 1
    marks = "[...document.querySelectorAll('#list ol:not(.evidence) .found')].map((mark) => mark.textContent)"
    assert await page.run(marks) == ["✓ evidence"]
    assert await page.run("window.broken") is None


async def test_verdicts_of_all_judges_are_shown(tmp_path: Path) -> None:
    run = a_run(dialogues=1)
    further = {"r1": FurtherVerdict(label=0, note="it names another town"), "r2": FurtherVerdict(label=None)}
    rows = tuple(replace(row, judge_note="both say Kazan", verdicts=further) for row in run.rows)
    folder = replace(run, rows=rows).write(tmp_path / "run")
    write_report(folder)
    async with opened(folder, tmp_path / "profile", fragment="#questions?open=rag-hybrid/en/0/q01/0") as page:
        await page.until(OPENED)
        shown = await page.run("document.querySelector('#list .detail:not([hidden])').innerText")
    for part in ("2 of 3: right\n", "both say Kazan", "r1: 0 of 3: wrong\n", "it names another town", "r2: unreadable"):
        assert part in shown


async def test_a_repeat_is_named_in_the_list_and_in_the_opened_row(tmp_path: Path) -> None:
    run = a_run(dialogues=1)
    rows = [*run.rows, *(replace(row, repeat=1, ingest=1) for row in run.rows)]
    folder = replace(run, rows=tuple(sorted(rows, key=lambda row: row.key))).write(tmp_path / "run")
    write_report(folder)
    async with opened(folder, tmp_path / "profile", fragment="#questions?open=rag-hybrid/en/0/q01/1") as page:
        await page.until(OPENED)
        item = "document.querySelector('#list .detail:not([hidden])').closest('li')"
        assert "· repeat 2, ingest 2 ·" in await page.run(f"{item}.querySelector('.question').innerText")
        assert "Repeat\n\nrepeat 2, ingest 2" in await page.run(f"{item}.querySelector('.detail').innerText")
        assert "judging" not in await page.run(f"{item}.innerText")


async def test_the_address_keeps_filters_and_the_open_question(folder: Path, tmp_path: Path) -> None:
    wanted = {"system": "rag-hybrid", "axis:scope": "multi", "text": "kazan", "open": "rag-hybrid/ru/5/q15/0"}
    async with opened(folder, tmp_path / "profile", fragment=f"#questions?{urlencode(wanted)}") as page:
        assert await page.run(FOCUS) == wanted["open"]
        assert await page.run("document.activeElement.getAttribute('aria-expanded')") == "true"
        assert await page.run("document.querySelector('#filters details').open")
        expected = keys(lambda row: row.system == "rag-hybrid" and row.axes["scope"] == "multi")
        assert set(await page.run(SHOWN)) == expected
        await choose(page, "axis:scope", "single")
        assert await page.run(ADDRESS) == "#questions?system=rag-hybrid&axis:scope=single&text=kazan"
        await page.click("#list .question")
        opened_key = await page.run("document.querySelector('#list > li').dataset.key")
        assert (await page.run(ADDRESS)).endswith(f"&open={opened_key}")
        await page.run("location.hash = '#questions?open=rag-dense/en/3/q07/0'")
        await page.run("new Promise((done) => setTimeout(done))")
        assert await page.run(FOCUS) == "rag-dense/en/3/q07/0"
        assert await page.run(FOUND) == "816 of 816 rows"


async def test_the_list_grows_on_demand_and_takes_the_focus_along(page: Page) -> None:
    await page.click("#more")
    assert await page.run("document.querySelectorAll('#list > li').length") == 80
    assert await page.run(FOCUS) == await page.run("document.querySelectorAll('#list > li')[40].dataset.key")
    assert await page.run("new Set([...document.querySelectorAll('#list .detail')].map((e) => e.id)).size") == 80


async def test_in_russian_all_that_is_not_a_name_is_russian(folder: Path, tmp_path: Path) -> None:
    async with opened(folder, tmp_path / "profile", file="report.ru.html") as page:
        await choose(page, "language", "en")
        await page.run("document.querySelectorAll('#list .question').forEach((each) => each.click())")
        html = await page.run("document.getElementById('questions').outerHTML")
    assert "Полнота по сессиям" in html
    assert "Извлечено 10 записей памяти" in html
    assert "среда, 2 октября 2024 г." in html.replace("\u202f", " ").replace("\xa0", " ")
    assert english_left(html, "turns") == []
