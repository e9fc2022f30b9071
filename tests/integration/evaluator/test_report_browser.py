"""The report in a real browser: quiet, alone, usable with a keyboard and on a phone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memdock_evaluator.report import write_report
from support.browser import CHROMIUM, Page, browser
from support.synthetic_rows import a_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)"),
]


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    folder = a_run(offline=True, hostile=True).write(tmp_path / "run")
    write_report(folder)
    async with browser(tmp_path / "profile") as page:
        await page.open(folder / "report.html")
        await page.run("window.explorerReady")
        yield page


async def select(page: Page, field: str, value: str) -> None:
    await page.run(
        f"(() => {{ const select = document.querySelector('#filters [name={field}]'); select.value = '{value}';"
        " for (const kind of ['input', 'change']) select.dispatchEvent(new Event(kind, {bubbles: true})); })()"
    )


async def test_it_is_quiet_and_asks_for_nothing(page: Page) -> None:
    await page.run("document.querySelector('#list .question').click()")
    assert page.problems == []
    assert [url.rsplit("/", 1)[-1] for url in page.requests] == ["report.html"]
    assert await page.run("window.broken") is None


async def test_filters_find_the_rows_that_are_there(page: Page) -> None:
    found = "document.getElementById('found').textContent"
    assert await page.run(found) == "816 of 816 rows"
    await select(page, "system", "rag-dense")
    await select(page, "language", "en")
    assert await page.run(found) == "102 of 816 rows"
    await select(page, "value", "Abstention")
    assert await page.run(found) == "6 of 816 rows"
    await select(page, "value", "")
    await select(page, "result", "system error")
    assert await page.run(found) == "1 of 816 rows"
    await select(page, "result", "")
    await select(page, "text", "datEextraction?")
    assert await page.run(found) == "6 of 816 rows"
    await select(page, "text", "no such words")
    assert await page.run(found) == "0 of 816 rows"


async def test_a_question_opens_by_keyboard_and_shows_all_of_it(page: Page) -> None:
    await select(page, "result", "right")
    await page.run("document.querySelector('#list .question').focus()")
    await page.press("Enter")
    button = "document.querySelector('#list .question')"
    assert await page.run(f"{button}.getAttribute('aria-expanded')") == "true"
    shown = await page.run("document.querySelector('#list .detail').innerText")
    for part in (
        "Right answers",
        "Answer",
        "Wednesday, 2024-10-02 10:00",
        "Evidence",
        "Verdict",
        "2 (right)",
        "Memories retrieved (10)",
    ):
        assert part in shown
    assert await page.run("document.querySelectorAll('#list .memories .hit').length") == 1
    await page.press("Enter")
    assert await page.run(f"{button}.getAttribute('aria-expanded')") == "false"


async def test_the_list_grows_on_demand(page: Page) -> None:
    length = "document.querySelectorAll('#list > li').length"
    before = await page.run(length)
    await page.run("document.getElementById('more').click()")
    assert await page.run(length) == 2 * before
    assert await page.run("new Set([...document.querySelectorAll('#list .detail')].map(e => e.id)).size") == 2 * before


async def test_the_heat_map_shows_the_chosen_measure(page: Page) -> None:
    shown = "[...document.querySelector('.cell').children].filter(e => e.offsetParent).map(e => e.className)"
    assert await page.run(shown) == ["mrr"]
    await page.run("document.querySelector('.choice [value=judge_accuracy]').click()")
    assert await page.run(shown) == ["judge_accuracy"]


async def test_drawings_have_room_and_differences_open(page: Page) -> None:
    sizes = (
        "[...document.querySelectorAll('{}')].filter(e => e.checkVisibility())"
        ".map(e => e.getBoundingClientRect()).map(r => [r.width, r.height])"
    )
    plots = await page.run(sizes.format("#differences .plot"))
    assert len(plots) == 2 * 5
    assert min(min(size) for size in plots) > 20
    assert min(min(size) for size in await page.run(sizes.format(".drawing > svg"))) > 200
    assert min(size[0] for size in await page.run(sizes.format("#failures .part"))) >= 12
    await page.run("document.querySelectorAll('#differences summary').forEach((e) => e.click())")
    opened = await page.run(sizes.format("#differences .plot"))
    assert len(opened) > len(plots)
    assert min(min(size) for size in opened) > 20


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 390, 768, 1280])
async def test_no_width_scrolls_the_whole_page_sideways(page: Page, width: int, dark: bool) -> None:
    await page.look(width=width, dark=dark, phone=width < 500)
    await page.run("document.querySelector('#list .question').click()")
    await page.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert await page.run("document.documentElement.scrollWidth") <= width


CONTRAST = """
(() => {
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const paint = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const poor = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.offsetParent) continue;
    const grounds = [];
    for (let e = element; e; e = e.parentElement) grounds.unshift(getComputedStyle(e).backgroundColor);
    const ground = luminance(paint(grounds));
    const ink = luminance(paint([...grounds, getComputedStyle(element).color]));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < 4.5) poor.push(`${element.className || element.tagName} ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)];
})()
"""
"""Text whose contrast with the plain colours behind it is below 4.5 (WCAG 2.1, 1.4.3)."""


@pytest.mark.parametrize("dark", [False, True])
async def test_text_can_be_read_on_its_ground(page: Page, dark: bool) -> None:
    await page.look(dark=dark)
    await page.run("document.querySelector('.choice [value=judge_accuracy]').click()")
    await page.run("document.querySelectorAll('#list .question').forEach((e) => e.click())")
    await page.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert await page.run(CONTRAST) == []
