"""`memdock-zep-cloud serve`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click

from memdock.adapter.command import option
from memdock.adapter.hosted import HostedSettings, hosted_command
from memdock.system import System
from memdock_zep_cloud.framework import Zep
from memdock_zep_cloud.system import ZepCloudSystem

_OPTIONS = (
    option("--reranker", "How Zep ranks facts; only cross_encoder gives scores.", default="rrf",
           type=click.Choice(["rrf", "cross_encoder"])),
)  # fmt: skip


@asynccontextmanager
async def open_system(settings: HostedSettings) -> AsyncIterator[System]:
    """Zep Cloud by its own client."""
    zep = Zep(settings.url, settings.api_key, answer_s=settings.answer_s, patience_s=settings.patience_s)
    try:
        yield ZepCloudSystem(
            settings.system, zep, reranker=settings.more["reranker"], processing_s=settings.processing_s
        )
    finally:
        await zep.close()


main = hosted_command(
    "zep-cloud", "Zep Cloud behind the Memdock protocol.", "https://api.getzep.com/api/v2", open_system, _OPTIONS
)
