"""A page in headless Chromium, driven over the DevTools protocol: what it logs, asks for and looks like."""

import asyncio
import base64
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium")
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowDown": 40}
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)

_STILL = {"name": "prefers-reduced-motion", "value": "reduce"}
"""A page that scrolls smoothly moves away under the mouse on a busy machine."""


class Page:
    """One tab. `problems` are errors and exceptions of the console, `requests` the addresses that were asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())

    async def open(self, path: Path, fragment: str = "", *, scripts: bool = True) -> None:
        """Load a file and wait until it has loaded; without `scripts` as a browser that runs none."""
        await self.visit(path.resolve().as_uri() + fragment, scripts=scripts)

    async def visit(self, address: str, *, scripts: bool = True) -> None:
        """Load an address and wait until it has loaded."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        await self.call("Emulation.setEmulatedMedia", features=[_STILL])
        self._loaded.clear()
        await self.call("Page.navigate", url=address)
        await asyncio.wait_for(self._loaded.wait(), 30)

    async def look(self, *, width: int = 1280, height: int = 900, dark: bool = False, phone: bool = False) -> None:
        """Set the window's size in CSS pixels and the colour scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[_STILL, scheme])

    async def run(self, script: str) -> Any:
        """The value of an expression, once the page has ended what it does; an exception in it fails the test."""
        await self.call("Runtime.evaluate", expression="window.explorerReady", awaitPromise=True)
        answer = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, script: str, within_s: float = 60.0) -> None:
        """Waits until an expression is true."""
        for _ in range(round(10 * within_s)):
            if await self.run(script):
                return
            await asyncio.sleep(0.1)
        raise TimeoutError(f"not within {within_s:g} s: {script}")

    async def picture(self, path: Path) -> None:
        """A screenshot of the whole page."""
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    async def press(self, key: str, *, shift: bool = False) -> None:
        """A key with the focus where it is, one of `KEYS`."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": KEYS[key], "modifiers": 8 * shift}
            await self.call("Input.dispatchKeyEvent", **event, **(text if kind == "keyDown" else {}))

    async def write(self, text: str) -> None:
        """Text into the field that has the focus."""
        await self.call("Input.insertText", text=text)

    async def click(self, selector: str) -> None:
        """The mouse on the middle of the first element that a selector finds, once it stands still in view."""
        box = await self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One call of the DevTools protocol."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await asyncio.wait_for(self._waiting[number], 30)
        assert "error" not in answer, answer["error"]
        result: dict[str, Any] = answer["result"]
        return result

    async def _listen(self) -> None:
        async for message in self._socket:
            event = json.loads(message.data)
            params = event.get("params", {})
            match event.get("method"):
                case None:
                    self._waiting.pop(event["id"]).set_result(event)
                case "Page.loadEventFired":
                    self._loaded.set()
                case "Runtime.exceptionThrown":
                    self.problems.append(str(params["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert"):
                    self.problems.append(str(params["args"]))
                case "Log.entryAdded" if params["entry"]["level"] == "error":
                    self.problems.append(params["entry"]["text"])
                case "Network.requestWillBeSent":
                    self.requests.append(params["request"]["url"])


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Page]:
    """Start Chromium with an empty profile folder and yield its one page."""
    assert CHROMIUM
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank", stderr=asyncio.subprocess.DEVNULL
    )
    try:
        port = await _port(profile / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                tab = next(each for each in await answer.json() if each["type"] == "page")
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        await process.wait()


async def _port(file: Path) -> int:
    for _ in range(300):
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        await asyncio.sleep(0.1)
    raise TimeoutError("Chromium did not start")
