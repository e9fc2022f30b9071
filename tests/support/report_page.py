"""A report in a browser, ready to be looked at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.browser import Page, browser


@asynccontextmanager
async def opened(folder: Path, profile: Path, *, file: str = "report.html", fragment: str = "") -> AsyncIterator[Page]:
    """The report of a run in Chromium, its explorer filled."""
    async with browser(profile) as page:
        await page.open(folder / file, fragment)
        await page.run("window.explorerReady")
        yield page
