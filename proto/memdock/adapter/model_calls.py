"""Sees every call that a framework makes to a model, however deep: counts it, tags it, and keeps its failure.

Frameworks hide what a model call cost, and some turn a model's failure into an empty answer. All of them reach models
through `httpx`, or its successor `httpx2`, so that is where one looks: `watch()` once in the process, then
`with model_calls(space, purpose) as calls:` around a call of the framework, and `calls.check()` after it, which raises
what the framework swallowed. Texts in answers are whole (`whole_text`).
"""

import base64
import functools
import importlib
import json
import math
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

from memdock import usage
from memdock.adapter.whole_text import with_whole_texts
from memdock.errors import MemdockError, error

SPACE_HEADER = "X-Memdock-Space"
USAGE_HEADER = "X-Memdock-Usage"
"""Of a meter's answer: `requests=2 input=10 output=3 estimated=0`."""

CLIENTS = ("httpx", "httpx2")
_KINDS = {"/chat/completions": "chat", "/embeddings": "embeddings"}
_COUNT_DIGITS = 10
_JSON_FORMATS = ("json_object", "json_schema")
_current: ContextVar["ModelCalls | None"] = ContextVar("memdock_model_calls", default=None)


class ModelCalls:
    """The model calls inside one call of a framework; safe to feed from several threads.

    A request that fails and then succeeds, the same to the byte, has not failed.
    """

    def __init__(self, space: str, purpose: str) -> None:
        self.space = space
        self._purpose = purpose
        self._lock = threading.Lock()
        self._failures: dict[bytes, MemdockError] = {}
        self.count = 0
        """Requests that were answered, or failed."""

    def check(self) -> None:
        """Raises the first failure that no later try has mended."""
        with self._lock:
            failure = next(iter(self._failures.values()), None)
        if failure is not None:
            raise failure

    def answered(self, kind: str, request: Any, response: Any, dimension: int = 0) -> None:
        """Takes note of an answer that is read whole. `dimension` as for `watch`."""
        asked = _json(request.content)
        failure = _status_failure(response)
        reply = _json(response.content) if failure is None else {}
        if failure is None:
            self._count(kind, str(asked.get("model", "")), response, reply)
            failure = _reply_failure(kind, asked, reply, dimension)
        self._note(request.content, failure)

    def failed(self, request: Any, *, late: bool) -> None:
        """Takes note of a request without an answer."""
        reason, said = (
            ("PROVIDER_TIMEOUT", "did not answer in time") if late else ("PROVIDER_UNREACHABLE", "cannot be reached")
        )
        self._note(request.content, error(reason, f"The model at {request.url.host} {said}."))

    def _note(self, content: bytes, failure: MemdockError | None) -> None:
        with self._lock:
            self.count += 1
            if failure is None:
                self._failures.pop(content, None)
            else:
                self._failures[content] = failure

    def _count(self, kind: str, model: str, response: Any, reply: dict[str, Any]) -> None:
        metered = _metered(response.headers.get(USAGE_HEADER, ""))
        told = reply.get("usage") or {}
        inward = _get(told, "prompt_tokens")
        outward = 0 if kind == "embeddings" else _get(told, "completion_tokens")
        sent, received = len(response.request.content), len(response.content)
        counted = usage.is_count(inward, sent_bytes=sent) and usage.is_count(outward)
        if not counted:
            inward, outward = sent // 4, received // 4
        usage.count(
            model=model,
            purpose="embedding" if kind == "embeddings" else self._purpose,
            calls=metered.get("requests", 1),
            input_tokens=metered.get("input", inward),
            output_tokens=metered.get("output", outward),
            estimated=metered.get("estimated", 0 if counted else 1) == 1,
        )


@contextmanager
def model_calls(space: str, purpose: str) -> Iterator[ModelCalls]:
    """Everything that is asked of models inside the block belongs to `space`.

    `purpose` is what chat calls are for: "extraction", "query", "forgetting". Embeddings are "embedding".
    """
    calls = ModelCalls(space, purpose)
    token = _current.set(calls)
    try:
        yield calls
    finally:
        _current.reset(token)


def check_calls() -> None:
    """`check` of the block that one is in, for what must not be written after a failure."""
    calls = _current.get()
    if calls is not None:
        calls.check()


@functools.cache
def watch(dimension: int = 0) -> None:
    """Looks at all that this process sends through the HTTP clients that it has, and lets threads of pools inherit
    whose call they serve.

    `dimension`: how long the embedding model's vectors are, else 0; others are PROVIDER_PROTOCOL_ERROR then.
    """
    for name in CLIENTS:
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        library.Client.send = _seen(library, library.Client.send, dimension)
        library.AsyncClient.send = _seen_async(library, library.AsyncClient.send, dimension)
    ThreadPoolExecutor.submit = _with_context(ThreadPoolExecutor.submit)  # type: ignore[method-assign]


def _seen(library: Any, send: Callable[..., Any], dimension: int) -> Callable[..., Any]:
    @functools.wraps(send)
    def seen(client: Any, request: Any, **more: Any) -> Any:
        calls, kind = _current.get(), _kind(request)
        if calls is None or kind is None:
            return send(client, request, **more)
        request.headers[SPACE_HEADER] = calls.space
        try:
            response = send(client, request, **more)
            response.read()
        except library.HTTPError as fault:
            calls.failed(request, late=isinstance(fault, library.TimeoutException))
            raise
        calls.answered(kind, request, response, dimension)
        return with_whole_texts(library, response)

    return seen


def _seen_async(library: Any, send: Callable[..., Any], dimension: int) -> Callable[..., Any]:
    @functools.wraps(send)
    async def seen(client: Any, request: Any, **more: Any) -> Any:
        calls, kind = _current.get(), _kind(request)
        if calls is None or kind is None:
            return await send(client, request, **more)
        request.headers[SPACE_HEADER] = calls.space
        try:
            response = await send(client, request, **more)
            await response.aread()
        except library.HTTPError as fault:
            calls.failed(request, late=isinstance(fault, library.TimeoutException))
            raise
        calls.answered(kind, request, response, dimension)
        return with_whole_texts(library, response)

    return seen


def _with_context(submit: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(submit)
    def submitted(pool: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        return submit(pool, copy_context().run, work, *args, **more)

    return submitted


def _kind(request: Any) -> str | None:
    return next((kind for end, kind in _KINDS.items() if request.url.path.endswith(end)), None)


def _status_failure(response: Any) -> MemdockError | None:
    status, host = response.status_code, response.request.url.host
    if status < 400:
        return None
    if status in (401, 403):
        return error("PROVIDER_AUTH_FAILED", f"The model at {host} refused the key (HTTP {status}).")
    told = _json(response.content).get("error")
    code = told.get("code") if isinstance(told, dict) else None
    if status == 429 and code == "insufficient_quota":
        return error("PROVIDER_AUTH_FAILED", f"The model at {host} has no quota left for this key (HTTP 429).")
    if status == 429:
        return error("PROVIDER_RATE_LIMITED", f"The model at {host} is over its rate (HTTP 429).")
    if status in (408, 504):
        return error("PROVIDER_TIMEOUT", f"The model at {host} did not answer in time (HTTP {status}).")
    if status >= 500:
        return error("PROVIDER_UNREACHABLE", f"The model at {host} failed (HTTP {status}).")
    return error(
        "PROVIDER_PROTOCOL_ERROR",
        f"The model at {host} refused the request (HTTP {status}): is its name right, and what does its log say?",
    )


def _reply_failure(kind: str, asked: dict[str, Any], reply: dict[str, Any], dimension: int) -> MemdockError | None:
    """What is wrong with a reply that a framework may take for "nothing to remember"."""
    if kind == "embeddings":
        rows = reply.get("data")
        wanted = len(asked["input"]) if isinstance(asked.get("input"), list) else 1
        if not (isinstance(rows, list) and len(rows) == wanted and all(_get(row, "embedding") for row in rows)):
            return error("PROVIDER_PROTOCOL_ERROR", "The embedding model answered no list of as many vectors as texts.")
        return next(filter(None, (_vector_failure(row["embedding"], dimension) for row in rows)), None)
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = _get(choice, "message")
    if not isinstance(message, dict):
        return error("PROVIDER_PROTOCOL_ERROR", "The model answered no chat completion.")
    if _get(choice, "finish_reason") == "length":
        return error("PROVIDER_PROTOCOL_ERROR", "The model's reply was cut at its longest: let it answer longer.")
    if message.get("tool_calls"):
        return None
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        return error("PROVIDER_PROTOCOL_ERROR", "The model answered nothing.")
    if _get(asked.get("response_format"), "type") in _JSON_FORMATS and json_object(content) is None:
        return error("PROVIDER_PROTOCOL_ERROR", "The model answered no JSON, which it was asked for.")
    return None


def _vector_failure(value: Any, dimension: int) -> MemdockError | None:
    """What a store of 32-bit vectors cannot hold, or would give back as no number."""
    vector = _floats(value) if isinstance(value, str) else value
    if not (isinstance(vector, list | tuple) and vector and _are_finite(vector)):
        return error(
            "PROVIDER_PROTOCOL_ERROR", "The embedding model answered a vector with what is no finite 32-bit number."
        )
    if dimension and len(vector) != dimension:
        return error(
            "PROVIDER_PROTOCOL_ERROR",
            f"The embedding model answered a vector of {len(vector)} numbers, not {dimension}: is the model the right "
            "one, and --embedder-dimension its own?",
        )
    return None


def _are_finite(values: Sequence[Any]) -> bool:
    try:
        struct.pack(f"<{len(values)}f", *values)  # refuses what is beyond 32 bits, and what is no number
    except (struct.error, OverflowError):
        return False
    return all(map(math.isfinite, values))


def _floats(encoded: str) -> tuple[float, ...]:
    """The vector that the wire's "base64" format holds; an empty one where it holds none."""
    try:
        content = base64.b64decode(encoded, validate=True)
        return struct.unpack(f"<{len(content) // 4}f", content)
    except (ValueError, struct.error):
        return ()


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply, fenced or between other words, where frameworks take it out; `None` without one."""
    first, last = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[first : last + 1], strict=False) if 0 <= first < last else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _metered(header: str) -> dict[str, int]:
    """The counts of a meter's header; none where any of them can be none."""
    words = [word.partition("=")[::2] for word in header.split()]
    counts = {name: int(word) for name, word in words if word.isdecimal() and len(word) <= _COUNT_DIGITS}
    return counts if len(counts) == len(words) and all(map(usage.is_count, counts.values())) else {}


def _json(content: bytes) -> dict[str, Any]:
    """The object that it is, or an empty one."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
