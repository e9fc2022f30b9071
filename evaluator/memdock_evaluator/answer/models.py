"""A chat model behind any OpenAI-style endpoint: one prompt in, one text out, retried, and its failures told apart."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from memdock import usage
from memdock_evaluator.answer.completion import Completion, key_of
from memdock_evaluator.answer.endpoint import ModelEndpoint
from memdock_evaluator.answer.limiter import LONGEST_WAIT_S, AskedToWaitError, Slot
from memdock_evaluator.answer.paid import note_paid
from memdock_evaluator.answer.providers import Providers
from memdock_evaluator.answer.refusals import Refusal, read_refusal, retry_after_s
from memdock_evaluator.answer.reply_cache import CacheError, ReplyCache
from memdock_evaluator.answer.tokens import estimated_tokens
from memdock_evaluator.cost.bill import from_cache
from memdock_evaluator.faults import Breaker, Fault, RunStoppedError
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.waiting import Waiting

_FIRST_WAIT_S = 0.5

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


Tokens = Annotated[int, Field(ge=0, le=usage.MAX_CALL_TOKENS, strict=True)]
"""What can be a count of tokens; true and false are none."""

Words = Annotated[str | None, BeforeValidator(_whole)]


class _Message(BaseModel):
    content: Words = None
    refusal: Words = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: Tokens
    completion_tokens: Tokens


class _Reply(BaseModel):
    """What is read of a chat completion."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Annotated[_Usage | None, BeforeValidator(_counted)] = None


class ChatModel:
    """Asks one endpoint, as often at once as its provider bears."""

    def __init__(self, endpoint: ModelEndpoint, providers: Providers | None = None) -> None:
        """`providers`: what it shares with the other models of a run; left out, it shares nothing."""
        self._endpoint, self._providers = endpoint, providers or Providers()
        self._limiter = self._providers.limiter(endpoint)
        self._breaker = Breaker(endpoint.label)
        self._waiting = Waiting(endpoint.label, self._providers.say)
        self._url = f"{endpoint.url.rstrip('/')}/chat/completions"
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    async def complete(
        self,
        prompt: str,
        *,
        seed: int,
        use: str = "",
        spaces: Sequence[str] = (),
        usable: Callable[[str], bool] = lambda _: True,
    ) -> Completion:
        """The reply to `prompt` at the endpoint's temperature; its tokens are told to `memdock.usage`.

        `use` and `spaces`: what the reply is for and derives from, for the cache, which keeps replies that are
        `usable`. Timeouts, lost connections, 429, 5xx and replies that are none are tried again, as late as the
        endpoint asks. Raises `Fault`, or `RunStoppedError` where no request to this endpoint can succeed.
        """
        body = {
            "model": self._endpoint.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": self._endpoint.temperature,
            "seed": seed,
        }
        cache = self._providers.cache
        try:
            key = key_of(self._endpoint.url, body, f"{self._endpoint.purpose} {use}") if cache else b""
            if cache and (known := cache.get(key, spaces)) is not None:
                if self._is_owed(cache, key):
                    self._pay(known)
                    self._note_paid(key)
                else:
                    self._count(known, from_cache(self._endpoint.purpose))
                return known
            completion = await self._asked(prompt, body)
            if cache and usable(completion.text):
                cache.put(key, completion, spaces, run=self._providers.run_id)
                self._note_paid(key)
        except CacheError as error:
            raise RunStoppedError(str(error)) from error
        return completion

    def _is_owed(self, cache: ReplyCache, key: bytes) -> bool:
        """Whether this run paid for the reply and was killed before its bill had it."""
        run_id, paid = self._providers.run_id, self._providers.paid
        return bool(run_id) and key.hex() not in paid and cache.was_paid_by(key, run_id)

    def _note_paid(self, key: bytes) -> None:
        if self._providers.run_id:
            self._providers.paid.add(key.hex())
            note_paid(key.hex())

    async def _asked(self, prompt: str, body: Mapping[str, Any]) -> Completion:
        try:
            with self._waiting.call():
                completion = await self._tried(prompt, body)
        except Fault as fault:
            if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
                self._breaker.failed(fault)
            raise
        self._breaker.succeeded()
        return completion

    async def _tried(self, prompt: str, body: Mapping[str, Any]) -> Completion:
        """Waiting for a slot is not a try, and nobody waits before another try with a slot in hand."""
        for attempt in range(1, self._endpoint.tries + 1):
            self._heed()
            try:
                async with self._limiter.slot() as slot:
                    self._heed()
                    outcome = await self._kept(prompt, body, slot)
            except AskedToWaitError as refused:
                detail = f"{self._endpoint.label} {refused}"
                raise Fault(Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_RATE_LIMITED", detail) from refused
            if isinstance(outcome, Completion):
                return outcome
            fault, asked_s = outcome
            if attempt == self._endpoint.tries or (asked_s or 0.0) > LONGEST_WAIT_S:
                raise fault
            self._waiting.failed(fault.detail)
            if asked_s is None:  # else the limiter waits, for all
                await asyncio.sleep(_FIRST_WAIT_S * 2 ** (attempt - 1))
        raise AssertionError("an endpoint is tried at least once")

    def _heed(self) -> None:
        if self._providers.budget is not None:
            self._providers.budget.heed()

    async def _kept(self, prompt: str, body: Mapping[str, Any], slot: Slot) -> Completion | Retryable:
        """A try; one that is under way when the budget is spent is paid for, and so it ends and counts."""
        budget = self._providers.budget
        if budget is None:
            return await self._try(prompt, body, slot)
        asking = asyncio.create_task(self._try(prompt, body, slot))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            if not budget.is_spent:
                asking.cancel()
            return await asking

    async def _try(self, prompt: str, body: Mapping[str, Any], slot: Slot) -> Completion | Retryable:
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(endpoint.timeout_s), self._post(body) as answer:
                content = await answer.read()
            if answer.status >= 300:
                return self._refused(read_refusal(answer.status, content), answer.headers, slot)
            reply = _Reply.model_validate(json.loads(content))
        except TimeoutError:
            self._limiter.overloaded(slot)
            detail = f"{endpoint.label} did not answer within {endpoint.timeout_s:g} s"
            return Fault(Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_TIMEOUT", detail), None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
            detail = f"{endpoint.label} cannot be reached: check the address and that it is up"
            return Fault(Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_UNREACHABLE", detail), None
        except (aiohttp.ClientError, ValueError, RecursionError):
            detail = f"{endpoint.label} answered with something that is no chat completion: check the address"
            return Fault(Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_PROTOCOL_ERROR", detail), None
        self._limiter.went_well()
        return self._read(prompt, reply)

    def _post(self, body: Mapping[str, Any]) -> Any:
        if self._session is None:
            parts = urlsplit(self._url)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._endpoint.key or 'none'}"},
                proxy=None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme),
            )
        return self._session.post(self._url, data=orjson.dumps(body))

    def _read(self, prompt: str, reply: "_Reply") -> Completion:
        """The completion, its tokens counted; raises where it is none, after they were."""
        choice, counted = reply.choices[0], reply.usage
        if counted and not usage.is_count(counted.prompt_tokens, sent_bytes=len(prompt.encode(errors="replace"))):
            counted = None
        content = choice.message.content or ""
        completion = Completion(
            text=without_thoughts(content),
            input_tokens=counted.prompt_tokens if counted else estimated_tokens(prompt),
            output_tokens=counted.completion_tokens if counted else estimated_tokens(content),
            estimated=counted is None,
        )
        self._pay(completion)
        if choice.finish_reason == "content_filter" or choice.message.refusal:
            raise self._declined()
        return completion

    def _pay(self, completion: Completion) -> None:
        self._count(completion, self._endpoint.purpose)
        if self._providers.budget is not None:
            self._providers.budget.pay(self._endpoint.model, completion.input_tokens, completion.output_tokens)

    def _count(self, completion: Completion, purpose: str) -> None:
        usage.count(
            model=self._endpoint.model,
            purpose=purpose,
            input_tokens=completion.input_tokens,
            output_tokens=completion.output_tokens,
            estimated=completion.estimated,
        )

    def _declined(self) -> Fault:
        return Fault(Outcome.REFUSED, "CONTENT_FILTERED", f"{self._endpoint.label} declined to answer")

    def _refused(self, refusal: Refusal, headers: Mapping[str, str], slot: Slot) -> Retryable:
        """Raises what another try cannot mend."""
        label = self._endpoint.label
        if refusal.stops_run:
            raise RunStoppedError(f"{label} {refusal.sentence(f'MEMDOCK_EVAL_{self._endpoint.purpose.upper()}_KEY')}")
        if refusal.is_too_long:
            raise Fault(Outcome.SYSTEM_ERROR, "PAYLOAD_TOO_LARGE", f"the prompt does not fit {label}")
        if refusal.is_filter:
            raise self._declined()
        reason = "PROVIDER_RATE_LIMITED" if refusal.status == 429 else "PROVIDER_UNREACHABLE"
        fault = Fault(Outcome.INFRASTRUCTURE_ERROR, reason, f"{label} answers {refusal.status}: {refusal.said}")
        if not refusal.may_pass:
            raise fault
        if refusal.is_overload:
            self._limiter.overloaded(slot)
        asked_s = retry_after_s(headers)
        if asked_s is not None:
            self._limiter.close_for(asked_s)
        return fault, asked_s


def without_thoughts(text: str) -> str:
    """The reply behind a reasoning model's `<think>...</think>`; nothing where the thoughts do not end."""
    _, closed, reply = text.rpartition("</think>")
    if closed:
        return reply.strip()
    return "" if text.lstrip().startswith("<think>") else text.strip()
