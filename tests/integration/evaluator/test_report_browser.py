"""The report in a real browser, in each language: quiet, alone, readable on phones, in the dark and without scripts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memdock_evaluator.report import write_report
from memdock_evaluator.report.writing import PAGES
from support.browser import CHROMIUM, Page, browser
from support.paper_rows import a_paper_run
from support.report_page import opened
from support.synthetic_rows import a_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = a_run(offline=True, hostile=True).write(tmp_path_factory.mktemp("run"))
    write_report(folder)
    return folder


@pytest.fixture(params=sorted(PAGES.values()))
async def page(folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    async with opened(folder, tmp_path / "profile", file=request.param) as page:
        yield page
        assert page.problems == []
        assert [url.rsplit("/", 1)[-1] for url in page.requests] == [request.param]
        assert await page.run("window.broken") is None


async def test_it_is_quiet_and_asks_for_nothing(page: Page) -> None:
    await page.click("#list .question")
    await page.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    await page.until("document.querySelectorAll('#list .evidence li').length === 1")


async def shown_measure(page: Page) -> list[str]:
    shown: list[str] = await page.run(
        "[...document.querySelector('.slices .cell').children].filter(e => e.offsetParent).map(e => e.className)"
    )
    return shown


async def test_the_heat_map_shows_the_chosen_measure(page: Page) -> None:
    assert await shown_measure(page) == ["mrr"]
    await page.click(".choice [value=judge_accuracy]")
    assert await shown_measure(page) == ["judge_accuracy"]


@pytest.mark.parametrize("file", sorted(PAGES.values()))
async def test_tables_of_many_figures_fit_and_what_does_not_has_a_shadow(tmp_path: Path, file: str) -> None:
    run = a_paper_run(dialogues=3, questions=51)
    write_report(run.write(tmp_path / "run"))
    wide = "[...document.querySelectorAll('.scroller')].filter((e) => e.scrollWidth > e.clientWidth)"
    async with opened(tmp_path / "run", tmp_path / "profile", file=file) as page:
        await page.look(width=1280)
        await page.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        # The table of slices has a column a system and language; no other may be cut.
        assert await page.run(f"{wide}.filter((e) => !e.querySelector('.slices')).map((e) => e.ariaLabel)") == []
        shadows = await page.run(f"{wide}.map((e) => getComputedStyle(e).backgroundAttachment)")
        assert shadows == ["local, local, scroll, scroll"]


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


async def test_no_width_scrolls_the_whole_page_sideways(page: Page) -> None:
    await page.click("#list .question")
    await page.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    for width in (320, 360, 390, 768, 1280, 1920):
        await page.look(width=width, phone=width < 500)
        assert await page.run("document.documentElement.scrollWidth") <= width


async def test_each_language_leads_to_the_other_and_takes_the_view_along(page: Page) -> None:
    here = await page.run("document.documentElement.lang")
    await page.run("location.hash = '#questions?system=rag-hybrid'")
    await page.click("a.other")
    await page.run("new Promise((done) => setTimeout(done))")
    for _ in range(100):
        if await page.run("document.readyState === 'complete' && document.documentElement.lang") not in (False, here):
            break
    await page.run("window.explorerReady")
    assert await page.run("document.documentElement.lang") != here
    assert await page.run("document.querySelector('#filters [name=system]').value") == "rag-hybrid"
    page.requests.pop()


@pytest.mark.parametrize("file", sorted(PAGES.values()))
async def test_without_scripts_all_but_the_explorer_is_there(folder: Path, tmp_path: Path, file: str) -> None:
    async with browser(tmp_path / "profile") as page:
        await page.open(folder / file, scripts=False)
        tree = (await page.call("Accessibility.getFullAXTree"))["nodes"]
        names = [node.get("name", {}).get("value", "") for node in tree]
        assert {"The list of questions needs scripts", "Списку вопросов нужны скрипты"} & {
            n.split(",")[0] for n in names
        }
        assert not [node for node in tree if node.get("role", {}).get("value") in ("searchbox", "combobox")]
        heat = await shown_measure(page)
        assert heat == ["mrr"]
        await page.click(".choice [value=judge_accuracy]")
        assert await shown_measure(page) == ["judge_accuracy"]


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
    if (!own || !element.checkVisibility() || element.closest('.skip')) continue;
    const grounds = [];
    for (let e = element; e; e = e.parentElement) grounds.unshift(getComputedStyle(e).backgroundColor);
    const ground = luminance(paint(grounds));
    const drawn = element instanceof SVGElement;
    const ink = luminance(paint([...grounds, getComputedStyle(element)[drawn ? 'fill' : 'color']]));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < 4.5) poor.push(`${element.getAttribute('class') || element.tagName} ${ratio.toFixed(2)}`);
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
