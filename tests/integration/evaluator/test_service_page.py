"""The page at `/` in a real browser: signed in with a key, runs started and followed, a report opened, two compared."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser import CHROMIUM, Page, browser
from support.evaluation import write_data
from support.evaluation_servers import EvaluationServer, Site

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

PICTURES = os.environ.get("PAGE_PICTURES")
"""A folder for screenshots, to look at."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(folder=tmp_path, results=str(tmp_path / "results"))
    write_data(made.data / "d.jsonl")
    made.keys.update(ann=made.key("ann"), reader=made.key("ann", "--call", "ReadRuns"))
    return made


@pytest.fixture
def server(site: Site) -> Iterator[EvaluationServer]:
    with site.replicas("one", key=site.keys["ann"]) as (only,):
        yield only


SIGN_IN = "document.getElementById('key').value = {key!r}; document.querySelector('#sign-in button').click()"
STATES = "[...document.querySelectorAll('#runs .chip')].map((chip) => chip.className.split(' ')[1]).join()"


@pytest.mark.timeout(240)
async def test_a_person_signs_in_starts_runs_reads_and_compares(
    server: EvaluationServer, site: Site, tmp_path: Path
) -> None:
    async with browser(tmp_path / "profile") as page:
        await page.look()
        await page.visit(server.url)
        await page.until("!document.getElementById('sign-in').hidden")
        await page.run(
            "document.getElementById('language').lang === 'en' && document.getElementById('language').click()"
        )

        # A key that is none is told as such, and forgotten.
        await page.run(SIGN_IN.format(key="mdk_aaaaaaaaaa_x"))
        await page.until("document.getElementById('said').textContent.includes('not one that is valid')")
        assert await page.run("sessionStorage.getItem('key')") is None
        page.problems.clear()  # the browser itself tells of each 401

        await page.run(SIGN_IN.format(key=site.keys["ann"]))
        await page.until("!document.getElementById('inside').hidden")
        assert await page.run("localStorage.length + document.cookie.length") == 0

        # From the form, by the keyboard: data and a baseline are chosen, Enter in a field starts it.
        await page.run("document.querySelector('#data [value=\"own\"]').checked = false")
        await page.run("document.querySelector('#data [value=\"d.jsonl\"]').checked = true")
        await page.run("document.querySelector('#baseline [value=\"oracle\"]').checked = true")
        await page.run("document.getElementById('k').focus()")
        await page.press("Enter")
        await page.until(f"{STATES} === 'completed'")
        first = server.ask("GET", "/v1/runs").json["runs"][0]
        assert first["plan"] == {"k": "10", "repeats": "1", "data": ["d.jsonl"], "baseline": ["oracle"]}

        # What the form refuses is told by the field's name.
        await page.run("document.querySelector('#baseline [value=\"oracle\"]').checked = false")
        await page.run("document.querySelector('#start button').click()")
        await page.until("document.getElementById('said').textContent.includes('name a system or a baseline')")
        page.problems.clear()

        # From a plan that was pasted, its estimate first.
        await page.run("document.getElementById('plan').value = 'data: d.jsonl\\nbaseline: [oracle]\\nseed: 1\\n'")
        await page.run("document.getElementById('estimate').click()")
        await page.until("document.getElementById('estimated').textContent.includes('8 questions of 2 dialogues')")
        await page.run("document.querySelector('#start button').click()")
        await page.until(f"{STATES} === 'completed,completed'")

        await page.run("document.querySelectorAll('#runs input').forEach((box) => box.click())")
        await page.run("document.getElementById('compare').click()")
        await page.until("!document.getElementById('comparison').hidden")
        assert "seed" in await page.run("document.getElementById('comparison-plan').textContent")
        assert await page.run("document.querySelectorAll('#comparison tbody tr').length") == 2
        await _pictures(page, "en")

        await page.run("document.getElementById('language').click()")
        assert await page.run("document.documentElement.lang") == "ru"
        assert "завершён" in await page.run("document.getElementById('runs').textContent")
        english = (
            "[...document.querySelectorAll('[data-t]')].filter((node) => !/[а-яё]/i.test(node.textContent)).length"
        )
        assert await page.run(english) == 0
        await _pictures(page, "ru", phone=True)
        assert await page.run("document.documentElement.scrollWidth <= window.innerWidth")

        # Nothing but the server was asked, and the page's own policy held nothing back.
        assert {address.split("/")[2] for address in page.requests if address.startswith("http")} == {
            server.url.removeprefix("http://")
        }
        assert page.problems == []

        # The report opens by its link, works under its policy, and has no way to the key.
        link = server.ask("POST", f"/v1/runs/{first['run_id']}/report/links").json["path"]
        await page.look()
        await page.visit(server.url + link)
        assert await page.run("document.querySelector('h1').textContent") != ""
        assert await page.run("self.origin") == "null"
        assert await page.run("try { sessionStorage.length } catch (fault) { fault.name }") == "SecurityError"
        assert page.problems == []


async def test_a_key_that_only_reads_sees_no_way_to_start(server: EvaluationServer, site: Site, tmp_path: Path) -> None:
    server.ended(server.start_run({"data": "d.jsonl", "baseline": "refusal"}))
    async with browser(tmp_path / "profile") as page:
        await page.visit(server.url)
        await page.until("!document.getElementById('sign-in').hidden")
        page.problems.clear()
        await page.run(SIGN_IN.format(key=site.keys["reader"]))
        await page.until(f"{STATES} === 'completed'")
        assert await page.run("document.getElementById('start-section').hidden")
        acts = "[...document.querySelectorAll('#runs button')].map((button) => button.dataset.act).join()"
        assert await page.run(acts) == "report"
        await page.run("document.getElementById('sign-out').click()")
        assert await page.run("document.getElementById('runs').childElementCount") == 0
        assert await page.run("sessionStorage.getItem('key')") is None


async def _pictures(page: Page, name: str, *, phone: bool = False) -> None:
    for dark in (False, True):
        await page.look(width=390 if phone else 1280, height=844 if phone else 900, dark=dark, phone=phone)
        if PICTURES:
            await page.picture(Path(PICTURES) / f"{name}-{'dark' if dark else 'light'}.png")
