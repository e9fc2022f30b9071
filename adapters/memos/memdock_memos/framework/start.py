"""MemOS imported: with its models set, and without what it logs."""

import importlib
import logging
import logging.config
import os
import warnings
from pathlib import Path

from memdock.adapter.command import ModelAt
from memdock_memos.framework.losses import Losses


def load(folder: Path, chat: ModelAt, embedder: ModelAt, max_tokens: int) -> None:
    """Imports MemOS without what its import sets up: a file and a console that log every text."""
    os.environ |= _variables(folder, chat, embedder, max_tokens)
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")  # they show values, such as texts
    configure = logging.config.dictConfig
    logging.config.dictConfig = lambda config: None  # noqa: ARG005 - MemOS keeps this one, and calls it once
    try:
        importlib.import_module("memos")
    finally:
        logging.config.dictConfig = configure
    from memos.embedders.universal_api import UniversalAPIEmbedder

    # MemOS's own asks for a number of dimensions, which many servers refuse, and then asks again without.
    UniversalAPIEmbedder._build_embedding_kwargs = staticmethod(  # noqa: SLF001
        lambda model, texts, _dimension: {"model": model, "input": texts}
    )
    logger = logging.getLogger("memos")
    logger.propagate = False
    logger.handlers[:] = [Losses(logging.ERROR)]
    logger.setLevel(logging.ERROR)


def _variables(folder: Path, chat: ModelAt, embedder: ModelAt, max_tokens: int) -> dict[str, str]:
    """What MemOS reads as it is imported and set up: one chat model for all that it asks."""
    return {
        "PYTHON_DOTENV_DISABLED": "true",
        "MEMOS_BASE_PATH": str(folder),
        "GRAPH_DB_BACKEND": "postgres",
        "MEMOS_SCHEMA": "memos",
        "MOS_CHAT_MODEL": chat.model,
        "OPENAI_API_KEY": chat.key,
        "OPENAI_API_BASE": chat.url,
        "MOS_MAX_TOKENS": str(max_tokens),
        "MEMRADER_MODEL": chat.model,
        "MEMRADER_API_KEY": chat.key,
        "MEMRADER_API_BASE": chat.url,
        "MEMRADER_MAX_TOKENS": str(max_tokens),
        "MOS_EMBEDDER_BACKEND": "universal_api",
        "MOS_EMBEDDER_PROVIDER": "openai",
        "MOS_EMBEDDER_MODEL": embedder.model,
        "MOS_EMBEDDER_API_KEY": embedder.key,
        "MOS_EMBEDDER_API_BASE": embedder.url,
        "MOS_EMBEDDER_TIMEOUT": "60",
        "EMBEDDING_DIMENSION": str(embedder.dimension),
        "MOS_RERANKER_BACKEND": "cosine_local",
        "MOS_FEEDBACK_RERANKER_BACKEND": "cosine_local",
        "ASYNC_MODE": "sync",
        "API_SCHEDULER_ON": "false",
        "ENABLE_INTERNET": "false",
        "ENABLE_PREFERENCE_MEMORY": "false",
        "FINE_STRATEGY": "rewrite",  # the other one makes up memories that are in no store
    }
