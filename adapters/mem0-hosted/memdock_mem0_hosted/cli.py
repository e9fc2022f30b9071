"""`memdock-mem0-hosted serve`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import click

from memdock.adapter.command import option
from memdock.adapter.hosted import HostedSettings, hosted_command
from memdock.adapter.native_ids import NativeIds
from memdock.system import System
from memdock_mem0_hosted.framework import Mem0Platform
from memdock_mem0_hosted.system import Mem0HostedSystem

_OPTIONS = (
    option("--unit", "What is one add: a user's turn with its reply, or a turn.", default="pair",
           type=click.Choice(["pair", "turn"])),
)  # fmt: skip


@asynccontextmanager
async def open_system(settings: HostedSettings) -> AsyncIterator[System]:
    """mem0's service by its own client; ends what it stands on."""
    async with AsyncExitStack() as ends:
        platform = await asyncio.to_thread(
            Mem0Platform,
            settings.url,
            settings.api_key,
            settings.data,
            answer_s=settings.answer_s,
            patience_s=settings.patience_s,
        )
        ends.push_async_callback(platform.close)
        ids = await asyncio.to_thread(NativeIds, settings.data / "ids.sqlite")
        ends.callback(ids.close)
        pairs = settings.more["unit"] == "pair"
        yield Mem0HostedSystem(settings.system, platform, ids, pairs=pairs, processing_s=settings.processing_s)


main = hosted_command(
    "mem0-hosted", "mem0's hosted service behind the Memdock protocol.", "https://api.mem0.ai", open_system, _OPTIONS
)
