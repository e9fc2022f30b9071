"""Embeddings from a bundled model, sentence-transformers or a remote endpoint, in process or on the OpenAI wire."""

from memdock_embedder.backends import Embedded, Embedder, EmbedderError, InputType
from memdock_embedder.choose import open_embedder

__all__ = ["Embedded", "Embedder", "EmbedderError", "InputType", "open_embedder"]
