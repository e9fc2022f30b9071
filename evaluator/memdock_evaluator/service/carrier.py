"""One attempt at a run, carried out: `memdock-eval run` as a process of its own, and beats while it works.

A process of its own, so that neither its memory nor its end is the server's, and so that what a run does is what the
command does. It gets its plan on standard input, tells its progress on standard error, and ends with this process.
"""

import asyncio
import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import orjson
import structlog

from memdock.log import log_fault
from memdock_evaluator.isolation.engine import Engine
from memdock_evaluator.results.finalise import MANIFEST
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import Manifest, ManifestError
from memdock_evaluator.run.settings import SettingsError
from memdock_evaluator.service.book import Book, Place, results_of
from memdock_evaluator.service.documents import Beat, End, Said, new_token, now
from memdock_evaluator.service.faults import PlanError, ResultsUnreachableError
from memdock_evaluator.service.offer import Offer
from memdock_evaluator.service.plans import Files, run_document
from memdock_evaluator.stack import clean_environment

CANCELLED, COMPLETED, INCOMPLETE, FAILED = "cancelled", "completed", "incomplete", "failed"
STATES = {0: COMPLETED, 1: INCOMPLETE, 2: FAILED, 3: INCOMPLETE, 4: INCOMPLETE}
"""By the exit code of `memdock-eval run`."""
HELD = "another run is writing to"
"""What it says of a folder whose last writer has not ended yet."""

BROKE = "the run broke at a fault of the evaluator's own, which the server's log tells; nothing that it had is lost"
"""In place of a trace."""
_ERROR, _TRACE = "Error: ", "Traceback (most recent call last)"
_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+), in (\S+)')

HELD_BEATS = 3
MAX_SAID, MAX_SENTENCE = 200, 2000
MAX_LINE_BYTES = 1 << 20
STOP_S = 60.0
"""Until a process that was told to end is killed."""


@dataclass(slots=True)
class Told:
    """What the process has told so far."""

    plain: Callable[[str], str]
    """Takes the server's own folders out of a sentence."""
    done: dict[str, tuple[int, int]] = field(default_factory=dict)
    said: deque[Said] = field(default_factory=lambda: deque(maxlen=MAX_SAID))
    ends: deque[str] = field(default_factory=lambda: deque(maxlen=400))
    numbers: int = 0

    def take(self, line: bytes) -> None:
        """A line of standard error: progress as JSON, or the words of the end."""
        try:
            told = orjson.loads(line)
        except orjson.JSONDecodeError:
            self.ends.append(line.decode(errors="replace").rstrip())
            return
        if isinstance(told, dict) and "said" in told:
            self.say(str(told["said"]))
        elif isinstance(told, dict) and "done" in told:
            self.done = {str(work): (int(done), int(total)) for work, (done, total) in told["done"].items()}

    def say(self, text: str) -> None:
        """A sentence for whoever watches."""
        self.numbers += 1
        self.said.append(Said(number=self.numbers, at=now(), text=self.plain(text)[:MAX_SENTENCE]))

    def sentences(self) -> tuple[str, ...]:
        """The words of the command's error; none where it ended without one, whatever else it wrote."""
        lines = [line for line in self.ends if line]
        first = next((number for number, line in enumerate(lines) if line.startswith(_ERROR)), len(lines))
        words = takewhile(lambda line: not line.startswith(_TRACE), lines[first:])
        return tuple(self.plain(line.removeprefix(_ERROR))[:MAX_SENTENCE] for line in words)

    def frames(self) -> list[str]:
        """Where the command broke, as "file:line function", without the words of the fault, which may quote a text."""
        return [f"{match[1]}:{match[2]} {match[3]}" for line in self.ends if (match := _FRAME.match(line))]


class Carrier:
    """Carries out one attempt that was taken as `number`. `run` returns the end, or `None` where it is not ours."""

    def __init__(
        self, *, book: Book, offer: Offer, address: str, place: Place, number: int, scratch: Path, beat_s: float
    ) -> None:
        """`address`: of the results. `scratch`: an empty folder, for the files of this attempt."""
        self._book, self._offer, self._address = book, offer, address
        self._place, self._number = place, number
        self._scratch, self._beat_s = scratch, beat_s
        self._told = Told(plain=self._in_service_words)
        self._count = 0
        self._process: asyncio.subprocess.Process | None = None
        self._cancelled = self._lost = self._drained = False
        self._log = structlog.get_logger("memdock.evaluation").bind(
            run=place.run_id, tenant=place.tenant, attempt=place.attempt
        )

    def _in_service_words(self, said: str) -> str:
        """A sentence of the command without the server's folders, and with what is done here in place of a command."""
        said = self._offer.without_places(said, self._address, str(self._scratch))
        return said.replace("the same command", "resuming it")

    def drain(self) -> None:
        """The server ends: the process is told to end in order, and any replica may go on."""
        self._drained = True
        self._stop()

    async def run(self) -> End | None:
        """Carries it out; raises `ResultsUnreachableError` where the marks cannot be reached at first."""
        before = await asyncio.to_thread(self._book.newest_beat, self._place)
        self._told.done = dict(before.done)
        self._told.said.extend(before.said)
        self._told.numbers = before.said[-1].number if before.said else 0
        asked = await asyncio.to_thread(self._book.asked, self._place)
        attempt = await asyncio.to_thread(self._book.attempt, self._place)
        if asked is None or attempt is None:
            return None  # removed meanwhile
        await self._beat()
        if self._lost:
            return None
        if self._cancelled:
            return await self._ended(None)
        try:
            document = run_document(
                asked.plan,
                self._offer,
                Files(scratch=self._scratch),
                out=f"{self._address}/{results_of(asked.tenant, asked.run_id)}",
                budget=attempt.budget,
                docker=await asyncio.to_thread(self._engine),
            )
        except PlanError as error:
            return await self._ended(FAILED, error.message)
        beating = asyncio.create_task(self._keep_beating())
        try:
            code = await self._carry_out(document)
        finally:
            beating.cancel()
        return await self._after(code)

    async def _carry_out(self, document: Mapping[str, object]) -> int:
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memdock_evaluator.service.child", str(os.getpid())),
            *("run", "--plan", "-", "--progress", "json"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**clean_environment(), "NO_COLOR": "1", "COLUMNS": "400"},
            cwd=self._offer.data or self._scratch,
            limit=MAX_LINE_BYTES,
            start_new_session=True,
        )
        self._log.info("run_started", process=process.pid)
        assert process.stdin is not None
        assert process.stderr is not None
        if self._drained or self._cancelled or self._lost:
            self._stop()
        try:
            process.stdin.write(orjson.dumps(document))
            await process.stdin.drain()
            process.stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            self._log.warning("run_ended_early", process=process.pid)
        while line := await _line(process.stderr):
            self._told.take(line)
        code = await process.wait()
        self._log.info("run_ended", process=process.pid, exit_code=code)
        return code

    async def _after(self, code: int) -> End | None:
        if self._lost:
            return None
        sentences = self._told.sentences()
        if code > 0 and not sentences:
            self._log.error("run_broke", exit_code=code, frames=self._told.frames())
            sentences = (BROKE,)
        if self._cancelled:
            return await self._ended(CANCELLED, *sentences, code=code)
        if self._drained and code != 0:
            await self._release()
            return None
        if code == 1 and any(HELD in sentence for sentence in sentences):
            self._told.say("the folder is still held by whoever wrote there before; it is tried again")
            await asyncio.sleep(HELD_BEATS * self._beat_s)
            await self._release()
            return None
        if code < 0:
            name = signal.Signals(-code).name
            said = f"the process of the run was ended by {name}, as it is for want of memory; resume it"
            return await self._ended(INCOMPLETE, *sentences, said, code=code)
        return await self._ended(STATES.get(code, INCOMPLETE), *sentences, code=code)

    async def _release(self) -> None:
        await self._write(released=True)

    async def _ended(self, state: str | None, *sentences: str, code: int | None = None) -> End | None:
        """Writes how it ended, as soon as the results can be reached; `state` `None`: cancelled before it began."""
        cost, currency = await asyncio.to_thread(self._cost)
        end = End(
            state=state or CANCELLED,
            at=now(),
            token=new_token(),
            exit_code=code,
            sentences=sentences,
            cost=cost,
            currency=currency,
        )
        await self._write(released=False)
        while not self._lost:
            try:
                await asyncio.to_thread(self._book.end, self._place, end)
            except ResultsUnreachableError:
                await asyncio.sleep(self._beat_s)
            else:
                return end
        return None

    def _engine(self) -> str:
        """The engine that tells of the systems' containers; "" for none, and where it is away, which ends no run."""
        if not self._offer.docker:
            return ""
        try:
            Engine.check(self._offer.docker)
        except SettingsError as fault:
            self._log.warning("engine_away", why=str(fault))
            self._told.say("the containers are not recorded: the server's container engine does not answer")
            return ""
        return self._offer.docker

    def _cost(self) -> tuple[float | None, str]:
        """What the run has cost so far by its manifest."""
        try:
            folder = Folder(f"{self._address}/{results_of(self._place.tenant, self._place.run_id)}")
            content = folder.read(MANIFEST)
            cost = None if content is None else Manifest.from_json(content, place=MANIFEST).cost
        except (FolderError, ManifestError) as fault:
            log_fault("cost_not_read", fault)
            return None, ""
        return (None, "") if cost is None else (cost.money, cost.currency)

    async def _keep_beating(self) -> None:
        while not self._lost:
            await asyncio.sleep(self._beat_s)
            await self._beat()

    async def _beat(self) -> None:
        """Tells that this replica lives; looks whether the run is cancelled, or another's."""
        try:
            if await asyncio.to_thread(self._book.was_taken_over, self._place, self._number):
                self._lost = True
                self._log.warning("run_lost")
                self._stop()
                return
            if not self._cancelled and await asyncio.to_thread(self._book.is_cancelled, self._place):
                self._cancelled = True
                self._stop()
        except ResultsUnreachableError:
            return  # the next beat may come through; whoever takes over meanwhile is found then
        await self._write(released=False)

    async def _write(self, *, released: bool) -> None:
        self._count += 1
        beat = Beat(count=self._count, done=self._told.done, said=tuple(self._told.said), released=released)
        try:
            await asyncio.to_thread(self._book.beat, self._place, self._number, beat)
        except ResultsUnreachableError:
            self._log.warning("beat_lost")

    def _stop(self) -> None:
        """Tells the process to end in order, once."""
        process = self._process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            asyncio.get_running_loop().call_later(STOP_S, _kill, process)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()


async def _line(stream: asyncio.StreamReader) -> bytes:
    """The next line; of one that is too long, what came of it."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.readexactly(error.consumed)
