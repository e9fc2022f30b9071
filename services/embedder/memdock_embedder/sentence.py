"""Models of sentence-transformers, with the words that each wants before a query or a passage.

An optional install of its own (`memdock-embedder[sentence-transformers]`): it brings torch. Model cards fix the
prefixes: ai-forever/FRIDA, Qwen/Qwen3-Embedding-0.6B, intfloat/multilingual-e5-*.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from memdock_embedder.backends import Embedded, EmbedderError, InputType, unit

RETRIEVE_INSTRUCTION = (
    "Instruct: Given a question about a user, retrieve the parts of their conversations that answer it\nQuery:"
)
PREFIXES: Mapping[str, Mapping[InputType, str]] = {
    "frida": {"query": "search_query: ", "passage": "search_document: "},
    "qwen3-embedding": {"query": RETRIEVE_INSTRUCTION, "passage": ""},
    "e5": {"query": "query: ", "passage": "passage: "},
}


def prefixes_of(model: str) -> Mapping[InputType, str]:
    """The prefixes of a model by its name; none for a model that is not in the table."""
    name = model.rsplit("/", 1)[-1].lower()
    for part, prefixes in PREFIXES.items():
        if part in name.split("-") or name.startswith(part):
            return prefixes
    return {"query": "", "passage": ""}


class SentenceEmbedder:
    """A model of sentence-transformers by hub name or by folder, on the device that the library chooses.

    `model`: the hub name, or the folder's own name.
    """

    def __init__(self, name: str, *, batch_size: int = 32) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise EmbedderError(
                "VALIDATION_FAILED",
                f"the embedder sentence-transformers:{name} needs memdock-embedder[sentence-transformers]",
            ) from None
        try:
            self._model: Any = SentenceTransformer(name)
        except (OSError, ValueError) as cause:
            why = " ".join(str(cause).split())
            raise EmbedderError(
                "VALIDATION_FAILED", f"the embedder sentence-transformers:{name} cannot be loaded: {why}"
            ) from cause
        # Vectors are stored with the model's name, and where a machine has its files is no part of that.
        self.model = Path(name).absolute().name if Path(name).is_dir() else name
        self._prefixes = prefixes_of(self.model)
        self._batch_size = batch_size
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sentence")
        # The method that tells the dimension changed its name; one text tells it in every version.
        self.dimension = len(self._model.encode("dimension", show_progress_bar=False))

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """See `Embedder.embed`."""
        if not texts:
            return Embedded(vectors=np.empty((0, self.dimension), dtype=np.float32), tokens=0, calls=0)
        prefixed = [self._prefixes[input_type] + text for text in texts]
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, prefixed)

    def _embed(self, texts: list[str]) -> Embedded:
        raw = self._model.encode(texts, batch_size=self._batch_size, convert_to_numpy=True, show_progress_bar=False)
        lengths = self._model.tokenizer(texts, truncation=True, max_length=self._model.max_seq_length)["input_ids"]
        return Embedded(vectors=unit(np.asarray(raw, dtype=np.float32)), tokens=sum(len(ids) for ids in lengths))

    async def close(self) -> None:
        """Waits for the batch in work."""
        self._thread.shutdown(wait=True, cancel_futures=True)
