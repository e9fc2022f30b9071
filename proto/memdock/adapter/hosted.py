"""What adapters to hosted services share: a command with an API key and without models, waiting, names of users."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import click

from memdock.adapter.command import Open, Settings, address, option, served_command
from memdock.errors import MemdockError, error

_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.05, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedSettings(Settings):
    """What an adapter to a hosted service is started with.

    `answer_s`: how long one request may take. `processing_s`: how long the service may take over what it has accepted.
    `patience_s`: how long a request waits in all where the service says 429.
    """

    url: str
    api_key: str = field(repr=False)
    answer_s: float
    processing_s: float
    patience_s: float


def hosted_command(
    name: str, words: str, url: str, open_system: Open[HostedSettings], options: tuple[click.Option, ...] = ()
) -> click.Group:
    """The console command of an adapter to a hosted service; `url` is the service's own, and the default.

    It has no options of models: those are the service's, and what it asks of them is not known.
    """
    return served_command(name, words, _read, open_system, (*_shared(url), *options))


class HostedSystem:
    """The part of a system that its service decides: `check` asks that whether it knows the key."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self._check = check

    async def start(self) -> None:
        """Raises where the service does not know the key; one that is away may come back."""
        try:
            await self._check()
        except MemdockError as fault:
            if fault.reason == "PROVIDER_AUTH_FAILED":
                raise

    async def close(self) -> None:
        """Nothing is open here."""

    async def check_ready(self) -> None:
        """Raises while the service cannot be reached."""
        await self._check()


def user_of(system: str, space: str) -> str:
    """The service's user for a space: of letters, digits and - alone, at most 96, and without the space's name.

    Adapters that share an account are apart by their systems' names.
    """
    return f"{system[:63]}-{hashlib.sha256(f'{system} {space}'.encode()).hexdigest()[:32]}"


async def settled(look: Callable[[], Awaitable[bool]], within_s: float, what: str) -> None:
    """Looks until it is so, less and less often; PROVIDER_TIMEOUT, which names `what`, where it is not in time."""
    wait = _FIRST_LOOK_S
    try:
        async with asyncio.timeout(within_s):
            while not await look():
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, _LONGEST_LOOK_S)
    except TimeoutError:
        raise error("PROVIDER_TIMEOUT", f"{what} within {within_s:g} s.") from None


def _shared(url: str) -> Sequence[click.Option]:
    seconds = click.FloatRange(min=0.1)
    return (
        option("--url", "Address of the service.", default=url, callback=address),
        option("--api-key", "The service's API key; what is typed is seen by others on the machine: prefer a variable.",
               required=True, secret=True, callback=_key),
        option("--answer-timeout", "Seconds that one request may take.", default=30.0, type=seconds),
        option("--processing-timeout", "Seconds that the service may take over a turn that it has accepted.",
               default=600.0, type=seconds),
        option("--rate-limit-patience", "Seconds that a request waits in all where the service says 429.",
               default=120.0, type=seconds),
    )  # fmt: skip


def _read(settings: Settings) -> HostedSettings:
    more = dict(settings.more)
    return HostedSettings(
        system=settings.system,
        data=settings.data,
        url=more.pop("url"),
        api_key=more.pop("api_key"),
        answer_s=more.pop("answer_timeout"),
        processing_s=more.pop("processing_timeout"),
        patience_s=more.pop("rate_limit_patience"),
        more=more,
    )


def _key(_context: click.Context, _parameter: click.Parameter, key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise click.BadParameter("it has a space or a letter that no key has")
    return key
