"""The report as a screen reader has it: the tree that Chromium gives to assistive technology, in each language."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memdock_evaluator.report import write_report
from memdock_evaluator.report.writing import PAGES
from support.browser import CHROMIUM, Page
from support.report_page import opened
from support.synthetic_rows import a_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)"),
]

NAMED = {
    *("button", "combobox", "searchbox", "radio", "link", "image", "img", "table", "region", "navigation", "search"),
    *("DisclosureTriangle", "complementary", "heading", "form"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = a_run(offline=True).write(tmp_path_factory.mktemp("run"))
    write_report(folder)
    return folder


@pytest.fixture(params=sorted(PAGES.values()))
async def page(folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    async with opened(folder, tmp_path / "profile", file=request.param) as page:
        await page.run("document.querySelectorAll('#list .question').forEach((each) => each.click())")
        await page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        yield page


def role(node: dict[str, Any]) -> str:
    return str(node.get("role", {}).get("value", ""))


def name(node: dict[str, Any]) -> str:
    return str(node.get("name", {}).get("value", "")).strip()


async def tree(page: Page) -> list[dict[str, Any]]:
    nodes = (await page.call("Accessibility.getFullAXTree"))["nodes"]
    return [node for node in nodes if not node.get("ignored")]


async def test_every_control_picture_table_and_landmark_has_a_name(page: Page) -> None:
    nodes = [node for node in await tree(page) if role(node) in NAMED]
    assert {role(node) for node in nodes} >= {
        "button",
        "combobox",
        "searchbox",
        "radio",
        "link",
        "table",
        "region",
        "search",
    }
    assert [(role(node), node.get("properties")) for node in nodes if not name(node)] == []


async def test_the_parts_of_the_page_are_landmarks(page: Page) -> None:
    roles = [role(node) for node in await tree(page)]
    for landmark in ("banner", "navigation", "main", "contentinfo", "search"):
        assert roles.count(landmark) == 1, landmark


async def test_headings_go_down_one_level_at_a_time(page: Page) -> None:
    levels = await page.run("[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map((h) => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert [(before, after) for before, after in pairwise(levels) if after > before + 1] == []


async def test_every_table_has_a_caption_and_heads_that_say_what_they_are_of(page: Page) -> None:
    assert (
        await page.run("[...document.querySelectorAll('table')].filter((t) => !t.caption?.textContent.trim()).length")
        == 0
    )
    assert await page.run("[...document.querySelectorAll('th:not([scope])')].map((th) => th.textContent)") == []
    assert await page.run("[...document.querySelectorAll('th')].filter((th) => !th.textContent.trim()).length") == 0


async def test_every_drawing_has_its_numbers_in_a_table_near(page: Page) -> None:
    """Of a picture alone only its name is read: whoever wants to compare needs cells."""
    drawings = "[...document.querySelectorAll('[role=img]')]"
    assert await page.run(f"{drawings}.length") > 20
    alone = f"{drawings}.filter((drawing) => !drawing.closest('section').querySelector('table'))"
    assert await page.run(f"{alone}.map((drawing) => drawing.closest('section').id)") == []
    unmarked = "[...document.querySelectorAll('svg:not([role=img]):not([aria-hidden=true])')].length"
    assert await page.run(unmarked) == 0


async def test_texts_of_the_data_say_their_language(page: Page) -> None:
    await page.run("location.hash = '#questions?language=ru'")
    await page.run("new Promise((done) => setTimeout(done))")
    await page.run("document.querySelectorAll('#list .question').forEach((each) => each.click())")
    foreign = """[...document.querySelectorAll('#list *')].filter((each) =>
        [...each.childNodes].some((node) => node.nodeType === 3 && node.data.includes('Казань'))
    ).map((each) => each.closest('[lang]').lang)"""
    assert set(await page.run(foreign)) == {"ru"}
    other = await page.run("[document.documentElement.lang, document.querySelector('a.other').lang]")
    assert sorted(other) == ["en", "ru"]


async def test_the_first_tab_offers_the_way_past_the_navigation(page: Page) -> None:
    await page.run("document.activeElement.blur(); getSelection().setPosition(document.body, 0)")
    await page.press("Tab")
    assert await page.run("document.activeElement.className") == "skip"
    assert await page.run("document.activeElement.getBoundingClientRect().left") >= 0
    await page.press("Enter")
    await page.press("Tab")
    assert await page.run("document.activeElement.closest('section').id") == "results"


async def test_what_is_found_is_announced(page: Page) -> None:
    status = [node for node in await tree(page) if role(node) == "status"]
    assert len(status) == 1
    live = {each["name"]: each["value"].get("value") for each in status[0]["properties"]}
    assert live["live"] == "polite"
    assert "816" in await page.run("document.querySelector('[role=status]').textContent")
