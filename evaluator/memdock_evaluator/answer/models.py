"""A chat model behind any OpenAI-style endpoint: one prompt in, one text out, retried, and its failures told apart.

The only file that knows the `openai` package.
"""

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import openai
from pydantic import BaseModel, BeforeValidator, Field, NonNegativeInt, ValidationError

from memdock_evaluator.answer.endpoint import ModelEndpoint
from memdock_evaluator.answer.tokens import estimated_tokens
from memdock_evaluator.faults import Breaker, Fault, RunStoppedError
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.waiting import Say, Waiting, unheard

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 120.0
_RETRIED = {408, 409, 425, 429}
_TOO_LONG = re.compile(r"context.?length|maximum context|context window|too (long|many tokens)", re.IGNORECASE)
_FILTERED = re.compile(r"content.?(filter|policy)|moderation|safety", re.IGNORECASE)

Retryable: TypeAlias = tuple[Fault, float | None]
"""What to raise when no try is left, and the seconds that the endpoint asked to wait."""


def _whole(value: object) -> object:
    """A text without halves of surrogate pairs, which no file can hold and a model's cut reply may end with."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value


def _counted(value: object) -> object:
    """The usage, or `None` where it cannot be read: then the tokens are estimated."""
    try:
        return None if value is None else _Usage.model_validate(value)
    except ValidationError:
        return None


Words = Annotated[str | None, BeforeValidator(_whole)]


class _Message(BaseModel):
    content: Words = None
    refusal: Words = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt


class _Reply(BaseModel):
    """What is read of a chat completion."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Annotated[_Usage | None, BeforeValidator(_counted)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A reply without a reasoning model's thoughts; `estimated` where the endpoint counted no tokens."""

    text: str
    input_tokens: int
    output_tokens: int
    estimated: bool


class ChatModel:
    """Asks one endpoint, at most `concurrency` times at once."""

    def __init__(self, endpoint: ModelEndpoint, say: Say = unheard) -> None:
        """`say`: where it is told that an answer is long in coming."""
        self._endpoint = endpoint
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.url, api_key=endpoint.key or "none", timeout=endpoint.timeout_s, max_retries=0
        )
        self._free = asyncio.Semaphore(endpoint.concurrency)
        self._breaker = Breaker(endpoint.label)
        self._waiting = Waiting(endpoint.label, say)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def complete(self, prompt: str, *, seed: int) -> Completion:
        """The reply to `prompt` at the endpoint's temperature.

        Timeouts, lost connections, 429, 5xx and replies that are none are tried again, as late as the endpoint asks.
        Raises `Fault`, or `RunStoppedError` where no request to this endpoint can succeed.
        """
        async with self._free:
            try:
                with self._waiting.call():
                    completion = await self._complete(prompt, seed)
            except Fault as fault:
                if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
                    self._breaker.failed(fault)
                raise
            self._breaker.succeeded()
            return completion

    async def _complete(self, prompt: str, seed: int) -> Completion:
        for attempt in range(1, self._endpoint.tries + 1):
            outcome = await self._try(prompt, seed)
            if isinstance(outcome, Completion):
                return outcome
            fault, asked_s = outcome
            wait_s = _FIRST_WAIT_S * 2 ** (attempt - 1) if asked_s is None else asked_s
            if attempt == self._endpoint.tries or wait_s > _LONGEST_WAIT_S:
                raise fault
            self._waiting.failed(fault.detail)
            await asyncio.sleep(wait_s)
        raise AssertionError("an endpoint is tried at least once")

    async def _try(self, prompt: str, seed: int) -> Completion | Retryable:
        try:
            # Of its own, the client's time-out begins anew with every byte.
            async with asyncio.timeout(self._endpoint.timeout_s):
                answer = await self._client.chat.completions.with_raw_response.create(
                    model=self._endpoint.model,
                    messages=[{"role": "user", "content": prompt}],
                    temperature=self._endpoint.temperature,
                    seed=seed,
                )
            reply = _Reply.model_validate(json.loads(answer.content))
        except (openai.APITimeoutError, TimeoutError):
            detail = f"{self._endpoint.label} did not answer within {self._endpoint.timeout_s:g} s"
            return Fault(Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_TIMEOUT", detail), None
        except openai.APIStatusError as failure:
            return self._status(failure)
        except openai.APIConnectionError:
            detail = f"{self._endpoint.label} cannot be reached: check the address and that it is up"
            return Fault(Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_UNREACHABLE", detail), None
        except (openai.OpenAIError, ValueError, RecursionError):
            return self._garbage(), None
        return self._read(prompt, reply)

    def _read(self, prompt: str, reply: "_Reply") -> Completion:
        choice = reply.choices[0]
        if choice.finish_reason == "content_filter" or choice.message.refusal:
            raise Fault(Outcome.REFUSED, "CONTENT_FILTERED", f"{self._endpoint.label} declined to answer")
        content = choice.message.content or ""
        counted = reply.usage
        return Completion(
            text=without_thoughts(content),
            input_tokens=counted.prompt_tokens if counted else estimated_tokens(prompt),
            output_tokens=counted.completion_tokens if counted else estimated_tokens(content),
            estimated=counted is None,
        )

    def _garbage(self) -> Fault:
        detail = f"{self._endpoint.label} answered with something that is no chat completion: check the address"
        return Fault(Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_PROTOCOL_ERROR", detail)

    def _status(self, failure: openai.APIStatusError) -> Retryable:
        """Raises what another try cannot mend."""
        status, label = failure.status_code, self._endpoint.label
        words = f"{failure.code or ''} {failure.message}"
        if status in (401, 403):
            name = f"MEMDOCK_EVAL_{self._endpoint.purpose.upper()}_KEY"
            raise RunStoppedError(f"{label} refuses the key ({status}): check {name}") from failure
        if status == 404:
            said = f"check the address and the model's name ({_said(failure)})"
            raise RunStoppedError(f"{label} was not found (404): {said}") from failure
        if failure.code == "insufficient_quota":
            raise RunStoppedError(f"{label} has no quota left: {_said(failure)}") from failure
        if status == 413 or (status == 400 and _TOO_LONG.search(words)):
            raise Fault(Outcome.SYSTEM_ERROR, "PAYLOAD_TOO_LARGE", f"the prompt does not fit {label}") from failure
        if status == 400 and _FILTERED.search(words):
            raise Fault(Outcome.REFUSED, "CONTENT_FILTERED", f"{label} declined to answer") from failure
        detail = f"{label} answers {status}: {_said(failure)}"
        reason = "PROVIDER_RATE_LIMITED" if status == 429 else "PROVIDER_UNREACHABLE"
        fault = Fault(Outcome.INFRASTRUCTURE_ERROR, reason, detail)
        if status in _RETRIED or status >= 500:
            return fault, _retry_after_s(failure)
        raise fault from failure


def without_thoughts(text: str) -> str:
    """The reply behind a reasoning model's `<think>...</think>`; nothing where the thoughts do not end."""
    _, closed, reply = text.rpartition("</think>")
    if closed:
        return reply.strip()
    return "" if text.lstrip().startswith("<think>") else text.strip()


def _retry_after_s(failure: openai.APIStatusError) -> float | None:
    """Seconds of a Retry-After header; its other form, a date, is left to the usual waits."""
    written = failure.response.headers.get("retry-after", "")
    return float(written) if re.fullmatch(r"\d+(\.\d+)?", written) else None


def _said(failure: openai.APIStatusError) -> str:
    """The endpoint's own words, on one line of bearable length."""
    told = failure.body.get("message") if isinstance(failure.body, dict) else None
    return cut(told if isinstance(told, str) and told.strip() else failure.message)


def cut(words: str) -> str:
    """At most 200 characters of `words`, on one line."""
    line = " ".join(words.encode(errors="replace").decode().split())
    return line if len(line) <= 200 else line[:197] + "..."
