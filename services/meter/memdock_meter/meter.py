"""One call's way: recorded answer or endpoint, within the system's bounds, and a row of what became of it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import aiohttp
import orjson

from memdock_meter.config import Config, Mode, secret
from memdock_meter.lanes import Lane
from memdock_meter.metrics import Metrics
from memdock_meter.prices import Prices, read_prices
from memdock_meter.store import CallRow, Recording, Store
from memdock_meter.streaming import Send, Stream, with_usage
from memdock_meter.upstream import Attempt, CutError, Upstream
from memdock_meter.wire import Request, Tokens, WireError, estimated, read_reply

JSON, EVENTS = "application/json", "text/event-stream"
LEFT = 499
"""The status of a call whose caller did not wait for the answer, as nginx has it."""
_NOTHING = Tokens(input=0, output=0, estimated=False)


class CallerLeftError(Exception):
    """The caller of a stream did not wait for its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of status 200, whole. `requests`: how often the endpoint was asked for it; `replayed`: before."""

    content_type: str
    body: bytes
    tokens: Tokens
    requests: int = 0
    replayed: bool = False


class Meter:
    """Made by `Meter.open`; `close` it at the end."""

    def __init__(
        self,
        *,
        mode: Mode,
        store: Store,
        prices: Prices | None,
        upstreams: Mapping[str, Upstream],
        systems: Mapping[str, Mapping[str, str | None]],
        lanes: Mapping[str, Lane],
    ) -> None:
        self.store = store
        self.prices = prices
        self.metrics = Metrics()
        self._mode = mode
        self._upstreams = upstreams
        self._systems = systems
        self._lanes = lanes

    @classmethod
    async def open(cls, config: Config) -> "Meter":
        """Raises `ConfigError` for files that cannot be used."""
        prices = read_prices(config.prices) if config.prices else None
        keys = {name: secret(each.key_file) for name, each in config.upstreams.items()}
        store = Store(config.store, serves=True)
        currency = prices.currency if prices else ""
        return cls(
            mode=config.mode,
            store=store,
            prices=prices,
            upstreams={name: Upstream(each, keys[name]) for name, each in config.upstreams.items()},
            systems={name: {"chat": each.chat, "embeddings": each.embeddings} for name, each in config.systems.items()},
            lanes={
                name: Lane(name, each, spent=await store.spent(name), currency=currency)
                for name, each in config.systems.items()
            },
        )

    async def close(self) -> None:
        """Closes connections and the store."""
        for upstream in self._upstreams.values():
            await upstream.close()
        await self.store.close()

    def upstream(self, system: str, kind: str) -> Upstream:
        """The endpoint that a system reaches; raises `WireError` where it may reach none."""
        name = self._systems[system][kind]
        if name is None:
            raise WireError(404, "no_upstream", f"the meter's configuration gives {system} no {kind} endpoint")
        return self._upstreams[name]

    async def call(self, request: Request, send: Send) -> Answer:
        """Answers a call. Pieces of a stream go to `send` as they come, and then again stand in the answer.

        Raises `WireError` where there is no answer, and `CallerLeftError`.
        """
        started, at = time.perf_counter(), time.time()
        begun = False

        async def pass_on(piece: bytes) -> None:
            nonlocal begun
            begun = True
            try:
                await send(piece)
            except (ConnectionError, aiohttp.ClientError) as gone:  # the caller's connection, not the endpoint's
                raise CallerLeftError from gone

        attempt = self._attempt(request, pass_on, lambda: begun)
        answer, status = None, LEFT
        try:
            answer = await self._answer(request, attempt)
            status = 200
        except WireError as error:
            status = error.status
            raise
        finally:
            tokens = answer.tokens if answer else _cost_without_answer(attempt, left=status == LEFT)
            replayed = answer is not None and answer.replayed
            row = CallRow(
                at=at,
                system=request.system,
                space=request.space,
                kind=request.kind,
                model=request.model,
                status=status,
                tries=attempt.tries,
                input_tokens=tokens.input,
                output_tokens=tokens.output,
                estimated=tokens.estimated,
                money=0.0 if replayed else self._money(request.model, tokens),
                replayed=replayed,
                ms=(time.perf_counter() - started) * 1000,
            )
            await self._keep(row)
        if self._mode == "record" and not answer.replayed:
            await self._record(request, answer)
        return answer

    async def _answer(self, request: Request, attempt: Attempt[Answer]) -> Answer:
        if self._mode != "live" and (recording := await self.store.recording(request)) is not None:
            tokens = Tokens(input=recording.input_tokens, output=recording.output_tokens, estimated=recording.estimated)
            return Answer(content_type=recording.content_type, body=recording.body, tokens=tokens, replayed=True)
        if self._mode == "replay":
            raise WireError(
                404,
                "not_recorded",
                f"there is no recording of this {request.kind} request of {request.system}: record it",
            )
        lane = self._lanes[request.system]
        if lane.has_budget and self._money(request.model, _NOTHING) is None:
            raise WireError(
                400,
                "unpriced_model",
                f"{request.system} has a budget, and the price table does not know {request.model}: add its price",
            )
        upstream = self.upstream(request.system, request.kind)
        async with lane.entered():
            return replace(await upstream.ask(attempt), requests=attempt.tries)

    async def _record(self, request: Request, answer: Answer) -> None:
        recording = Recording(
            content_type=answer.content_type,
            body=answer.body,
            input_tokens=answer.tokens.input,
            output_tokens=answer.tokens.output,
            estimated=answer.tokens.estimated,
        )
        await self.store.record(request, recording)

    def _attempt(self, request: Request, send: Send, begun: Callable[[], bool]) -> Attempt[Answer]:
        async def whole(_attempt: Attempt[Answer], response: aiohttp.ClientResponse) -> Answer:
            body = await response.read()
            tokens = read_reply(body, request)
            if tokens is None:
                raise CutError("the endpoint answered with something that is no reply of this wire")
            return Answer(content_type=JSON, body=body, tokens=tokens)

        async def streamed(attempt: Attempt[Answer], response: aiohttp.ClientResponse) -> Answer:
            stream = Stream(request, send)
            try:
                await stream.read(response)
            finally:
                if begun():
                    attempt.told = stream.tokens
            return Answer(content_type=EVENTS, body=bytes(stream.sent), tokens=stream.tokens)

        body = with_usage(request.body) if request.streams else request.body
        read = streamed if request.streams else whole
        return Attempt(request=request, content=orjson.dumps(body), read=read, begun=begun)

    def _money(self, model: str, tokens: Tokens) -> float | None:
        return None if self.prices is None else self.prices.money(model, tokens)

    async def _keep(self, row: CallRow) -> None:
        # Before anything is waited for: the next call of the lane must find it spent.
        self._lanes[row.system].spent += row.money or 0.0
        self.metrics.count(row)
        await self.store.add(row)


def _cost_without_answer(attempt: Attempt[Answer], *, left: bool) -> Tokens:
    """What came of a stream that was cut, the input of a call whose caller left; any other failure says nothing: 0."""
    if attempt.told is not None:
        return attempt.told
    return estimated(attempt.request, 0) if left and attempt.tries else _NOTHING
