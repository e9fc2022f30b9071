"""What is tested: its faces, what it says of itself, and what the suite was given beside its address."""

import asyncio
import secrets
import time
from dataclasses import dataclass, field

from memdock.client import AsyncClient
from memdock.conformance.case import CheckFailedError, Need
from memdock.conformance.faces import Face
from memdock.conformance.models import SECRET, Models
from memdock.conformance.process import READY_S, CannotRunError, Launched, run_command
from memdock.errors import MemdockError
from memdock.types import Description, Feature, Support


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the suite runs. `settle_s`: how long it watches that nothing comes back. `timeout_s`: the longest case."""

    seed: int = 0
    timeout_s: float = 90.0
    settle_s: float = 30.0
    parallel: int = 8


@dataclass(slots=True, kw_only=True)
class Commands:
    """Commands that make and mend faults; empty: not given."""

    store_down: str = ""
    store_up: str = ""
    component_break: str = ""
    component_mend: str = ""


@dataclass(slots=True, kw_only=True)
class Target:
    """The system under test. `faces`: one or two. `system`: its name behind a gateway; empty: a lone server."""

    faces: tuple[Face, ...]
    urls: tuple[str, ...] = ()
    """Their addresses."""
    key: str = ""
    system: str = ""
    description: Description = field(init=False)
    models: Models | None = None
    process: Launched | None = None
    commands: Commands = field(default_factory=Commands)
    other: tuple[Face, ...] = ()
    """The same faces with a key of another tenant."""
    gateway: str = ""
    """A gateway's command."""
    run_id: str = field(default_factory=lambda: secrets.token_hex(3))
    words: set[str] = field(default_factory=set)
    """What the turns of running cases say and nothing else does, in small letters."""

    def __post_init__(self) -> None:
        for face in (*self.faces, *self.other):
            face.watch = self._watch

    def leak(self, words: str) -> str:
        """What an error's words hold that must not stand there; empty: nothing."""
        lower = words.lower()
        if SECRET in words:
            return "a secret of the model server"
        return "the text of a turn or of a query" if any(word in lower for word in self.words) else ""

    def _watch(self, words: str) -> None:
        if leak := self.leak(words):
            raise CheckFailedError(f"an error holds {leak}")

    def given(self) -> frozenset[Need]:
        """The needs that are met."""
        met = {
            Need.MODELS: self.models is not None,
            Need.LAUNCH: self.process is not None,
            Need.STORE: bool(self.commands.store_down and self.commands.store_up),
            Need.COMPONENT: bool(self.commands.component_break and self.commands.component_mend),
            Need.OTHER_KEY: bool(self.other),
            Need.GATEWAY: bool(self.gateway),
        }
        return frozenset(need for need, is_met in met.items() if is_met)

    def declares(self, feature: Feature) -> bool:
        """Native or emulated."""
        return self.description.features.get(feature, Support.UNSUPPORTED) is not Support.UNSUPPORTED

    async def describe(self) -> None:
        """Asks what stands behind the address. Raises `CannotRunError` when nobody answers."""
        client = AsyncClient(self.faces[0], system=self.system, timeout_s=20.0)
        try:
            self.description = await client.describe()
        except MemdockError as error:
            raise CannotRunError(f"the system does not describe itself: {error.message} ({error.reason})") from None
        except CheckFailedError as broken:
            raise CannotRunError(f"what answers there does not speak the protocol: {broken}") from None

    async def wait_ready(self) -> None:
        """Returns when every face says that it can serve. Raises `CannotRunError` when that takes too long."""
        ends = time.monotonic() + READY_S
        for face in self.faces:
            while not await face.is_ready():
                if self.process is not None and self.process.ended:
                    words = self.process.last_words.strip() or "none"
                    raise CannotRunError(
                        f"the system has ended (exit code {self.process.code}); its last words: {words}"
                    )
                if time.monotonic() > ends:
                    raise CannotRunError(f"the system is not ready over {face.name} within {READY_S:g} s")
                await asyncio.sleep(0.05)

    async def restart(self) -> None:
        """A kill, and a start over the same data."""
        assert self.process is not None
        await self.process.kill()
        await self.start()

    async def start(self) -> None:
        """Starts the process and waits until it serves."""
        assert self.process is not None
        await self.process.start()
        await self.wait_ready()

    async def command(self, line: str) -> None:
        """Runs one of the commands; raises `CannotRunError` when it fails."""
        code, said = await run_command(line)
        if code:
            raise CannotRunError(f"{line} ended with {code}: {said[-500:]}")
