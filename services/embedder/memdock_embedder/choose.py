"""From a word of the configuration to an embedder."""

from pathlib import Path

from memdock_embedder.backends import Embedder, EmbedderError
from memdock_embedder.batching import BatchingEmbedder
from memdock_embedder.cache import CachedEmbedder

SPECS = "bundled | sentence-transformers:MODEL | http(s)://host:port/v1#MODEL"


async def open_embedder(
    spec: str = "bundled", *, cache: Path | None = None, api_key: str = "", plain: bool = False
) -> Embedder:
    """Opens what `spec` names, to be called by many at once; `EmbedderError` says what is wrong with it.

    `bundled` (default) | `sentence-transformers:MODEL` (hub name or folder) | `http(s)://host:port/v1#MODEL`.
    `cache`: a file that keeps embeddings. `api_key`, `plain`: see `RemoteEmbedder`.
    """
    # Each back end is imported when it is asked for: a client of a remote endpoint needs no model in its process.
    if spec.startswith(("http://", "https://")):
        from memdock_embedder.remote import RemoteEmbedder

        url, _, model = spec.partition("#")
        if not model:
            raise EmbedderError("VALIDATION_FAILED", f"the embedder {spec!r} names no model: write {url}#MODEL")
        return await _cached(await RemoteEmbedder.connect(url, model, api_key=api_key, plain=plain), cache)
    # The cache stands behind the batches: a text that two callers bring at once is in one batch, and embedded once.
    return BatchingEmbedder(await _cached(_open_model(spec), cache))


def _open_model(spec: str) -> Embedder:
    """A model that runs in this process, one call at a time."""
    kind, _, name = spec.partition(":")
    if spec == "bundled":
        from memdock_embedder.bundled import BundledEmbedder

        return BundledEmbedder()
    if kind == "sentence-transformers" and name:
        from memdock_embedder.sentence import SentenceEmbedder

        return SentenceEmbedder(name)
    raise EmbedderError("VALIDATION_FAILED", f"unknown embedder {spec!r}: expected {SPECS}")


async def _cached(embedder: Embedder, cache: Path | None) -> Embedder:
    if cache is None:
        return embedder
    try:
        return CachedEmbedder(embedder, cache)
    except EmbedderError:
        await embedder.close()
        raise
