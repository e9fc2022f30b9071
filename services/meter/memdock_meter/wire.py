"""What is read of a request on OpenAI's wire, what is read of its reply, and errors as that wire has them."""

import hashlib
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

import orjson

Kind = Literal["chat", "embeddings"]
MAX_CALL_TOKENS, MAX_TOKENS_A_BYTE = 2**31, 100
"""No call of a model takes more tokens, or reads more of them for a byte of what it was sent."""
PATHS: dict[Kind, str] = {"chat": "/chat/completions", "embeddings": "/embeddings"}


class WireError(Exception):
    """A call that is not let through, or that failed; becomes OpenAI's error JSON.

    `again`: whether another try may succeed, which clients of this wire are told by a header.
    """

    def __init__(
        self, status: int, code: str, message: str, *, retry_after_s: float | None = None, again: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s
        self.again = again

    @property
    def body(self) -> bytes:
        """The error's JSON."""
        kind = "invalid_request_error" if self.status in (400, 404, 413) else "server_error"
        return orjson.dumps({"error": {"message": self.message, "type": kind, "param": None, "code": self.code}})

    @property
    def headers(self) -> dict[str, str]:
        """What clients go by when they decide about another try."""
        wait = {} if self.retry_after_s is None else {"Retry-After": f"{self.retry_after_s:g}"}
        return {"X-Should-Retry": str(self.again).lower(), **wait}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A chat completion or embeddings that a system asks for. `space` is the caller's tag, "" without one."""

    system: str
    space: str
    kind: Kind
    body: dict[str, Any]

    @property
    def model(self) -> str:
        """The model's name as the caller gave it."""
        name: str = self.body["model"]
        return name

    @property
    def streams(self) -> bool:
        """Whether the answer comes in pieces."""
        return self.kind == "chat" and self.body.get("stream") is True

    @property
    def digest(self) -> bytes:
        """A hash of everything that was asked, whatever the order of its fields."""
        words = orjson.dumps([self.kind, self.body], option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(words).digest()

    @property
    def input_bytes(self) -> int:
        """The size of what the model reads, for an estimate of its tokens."""
        return sum(map(_size, _texts(self.body.get("messages" if self.kind == "chat" else "input"))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """`estimated` where the endpoint did not count them: a quarter of the bytes of UTF-8."""

    input: int
    output: int
    estimated: bool


def read_request(content: bytes, *, system: str, space: str, kind: Kind) -> Request:
    """Raises `WireError` for what is no request of this wire, naming the field."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise WireError(400, "invalid_json", "the request's body is no JSON") from None
    if not isinstance(body, dict):
        raise WireError(400, "invalid_json", "the request's body is no JSON object")
    if not (isinstance(body.get("model"), str) and body["model"]):
        raise WireError(400, "model_missing", "the field model is missing: name one")
    field = "messages" if kind == "chat" else "input"
    if not body.get(field):
        raise WireError(400, f"{field}_missing", f"the field {field} is missing or empty")
    return Request(system=system, space=space, kind=kind, body=body)


def read_reply(content: bytes, request: Request) -> Tokens | None:
    """The tokens of a whole reply; `None` for what is none."""
    try:
        reply = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(reply, dict) or not reply.get("choices" if request.kind == "chat" else "data"):
        return None
    said = [choice.get("message") for choice in reply.get("choices", ()) if isinstance(choice, dict)]
    return tokens_of(reply.get("usage"), request, sum(map(_size, _texts(said))))


def tokens_of(usage: Any, request: Request, output_bytes: int) -> Tokens:
    """What the endpoint's `usage` says, or estimates."""
    counted = usage if isinstance(usage, dict) else {}
    inward, outward = counted.get("prompt_tokens"), counted.get("completion_tokens")
    if request.kind == "embeddings":
        outward = 0 if outward is None else outward
    if (
        _is_count(inward, MAX_TOKENS_A_BYTE * len(orjson.dumps(request.body)))
        and _is_count(outward)
        and (inward or not request.input_bytes)
    ):
        return Tokens(input=inward, output=outward, estimated=False)
    return estimated(request, output_bytes)


def _is_count(value: Any, most: int = MAX_CALL_TOKENS) -> TypeGuard[int]:
    """Whether an endpoint can have counted so many tokens of a call; true and false are no numbers."""
    return type(value) is int and 0 <= value <= min(most, MAX_CALL_TOKENS)


def estimated(request: Request, output_bytes: int) -> Tokens:
    """A quarter of the bytes, rounded up."""
    return Tokens(input=-(-request.input_bytes // 4), output=-(-output_bytes // 4), estimated=True)


def _texts(value: Any) -> list[str]:
    """All texts inside a JSON value, keys left out."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _texts(each)]


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
