"""From a word of the configuration to an embedder."""

from pathlib import Path

from memdock_embedder.backends import Embedder, EmbedderError
from memdock_embedder.cache import CachedEmbedder

SPECS = "bundled | sentence-transformers:MODEL | http(s)://host:port/v1#MODEL"


async def open_embedder(
    spec: str = "bundled", *, cache: Path | None = None, api_key: str = "", plain: bool = False
) -> Embedder:
    """Opens what `spec` names; `EmbedderError` says what is wrong with it.

    `bundled` (default) | `sentence-transformers:MODEL` (hub name or folder) | `http(s)://host:port/v1#MODEL`.
    `cache`: a file that keeps embeddings. `api_key`, `plain`: see `RemoteEmbedder`.
    """
    embedder = await _open(spec, api_key, plain)
    return CachedEmbedder(embedder, cache) if cache else embedder


async def _open(spec: str, api_key: str, plain: bool) -> Embedder:
    kind, _, rest = spec.partition(":")
    # Each back end is imported when it is asked for: a client of a remote endpoint needs no model in its process.
    if spec == "bundled":
        from memdock_embedder.bundled import BundledEmbedder

        return BundledEmbedder()
    if kind == "sentence-transformers" and rest:
        from memdock_embedder.sentence import SentenceEmbedder

        return SentenceEmbedder(rest)
    if kind in ("http", "https"):
        from memdock_embedder.remote import RemoteEmbedder

        url, _, model = spec.partition("#")
        if not model:
            raise EmbedderError("INTERNAL", f"the embedder {spec!r} names no model: write {url}#MODEL")
        return await RemoteEmbedder.connect(url, model, api_key=api_key, plain=plain)
    raise EmbedderError("INTERNAL", f"unknown embedder {spec!r}: expected {SPECS}")
