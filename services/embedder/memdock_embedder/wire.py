"""OpenAI's `/v1/embeddings`, read strictly and written, with `input_type` beside it."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import orjson

from memdock_embedder.backends import Embedded, InputType

FIELDS = frozenset({"input", "model", "encoding_format", "dimensions", "user", "input_type"})


class RequestError(Exception):
    """A request that is refused: `param` names the field."""

    def __init__(self, param: str, message: str) -> None:
        self.param = param
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one request."""

    max_texts: int = 2048
    max_text_bytes: int = 256 * 1024
    max_request_bytes: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """A checked request. `base64`: vectors as little-endian float32 in base64 instead of lists."""

    texts: Sequence[str]
    input_type: InputType
    base64: bool


def read_request(body: bytes, *, model: str, dimension: int, limits: Limits) -> EmbeddingRequest:
    """Reads the JSON of a request for `model`; raises `RequestError`.

    `input` is a text or a list of texts (token ids are refused: they belong to one tokenizer); `input_type` is query or
    passage, passage where it is not said.
    """
    try:
        data = orjson.loads(body)
    except ValueError:
        raise RequestError("body", "the body is not JSON") from None
    if not isinstance(data, dict):
        raise RequestError("body", "the body must be a JSON object")
    if unknown := sorted(set(data) - FIELDS):
        raise RequestError(unknown[0], f"unknown field {unknown[0]!r}: expected some of {', '.join(sorted(FIELDS))}")
    if data.get("model") not in (model, None):
        raise RequestError("model", f"this server has the model {model!r} only")
    if data.get("dimensions") not in (dimension, None):
        raise RequestError("dimensions", f"the model has {dimension} dimensions only")
    if data.get("encoding_format", "float") not in ("float", "base64"):
        raise RequestError("encoding_format", "expected float or base64")
    if data.get("input_type", "passage") not in ("query", "passage"):
        raise RequestError("input_type", "expected query or passage")
    return EmbeddingRequest(
        texts=_read_texts(data.get("input"), limits),
        input_type=cast("InputType", data.get("input_type", "passage")),
        base64=data.get("encoding_format") == "base64",
    )


def _read_texts(value: Any, limits: Limits) -> Sequence[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise RequestError("input", "expected a text or a list of at least one text")
    if len(texts) > limits.max_texts:
        raise RequestError("input", f"at most {limits.max_texts} texts a request, not {len(texts)}")
    for index, text in enumerate(texts):
        if not text or "\0" in text:
            raise RequestError(f"input[{index}]", "a text must not be empty and must not hold NUL")
        if len(text.encode()) > limits.max_text_bytes:
            raise RequestError(f"input[{index}]", f"a text has at most {limits.max_text_bytes} bytes of UTF-8")
    return texts


def write_answer(embedded: Embedded, *, model: str, as_base64: bool) -> bytes:
    """The JSON of an answer."""
    rows = [
        {"object": "embedding", "index": index, "embedding": _base64(row) if as_base64 else row.tolist()}
        for index, row in enumerate(embedded.vectors)
    ]
    usage = {"prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens}
    return orjson.dumps({"object": "list", "data": rows, "model": model, "usage": usage})


def _base64(row: "np.ndarray[Any, np.dtype[np.float32]]") -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


def write_error(message: str, *, kind: str, param: str | None = None, code: str | None = None) -> bytes:
    """The JSON of an error, as OpenAI's clients read it."""
    return orjson.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})
