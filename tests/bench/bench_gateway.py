"""What the gateway costs, with keys, metrics, logs and traces on: `PYTHONPATH=tests python -m bench.bench_gateway`.

Every figure is a ratio or a difference inside one run, the median of interleaved rounds: the machine's own speed moves
by a factor of two, ratios by a tenth. Retrieve with ten memories of 200 characters. Exit code 1 when a cap is broken.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import uvloop

from bench.gateway_parts import content_length, read_head
from bench.gateway_stack import Stack, running
from memdock.service import METHODS

Ask = Callable[[], Awaitable[object]]

RETRIEVE = METHODS["Retrieve"]
CALLERS = 32
MAX_ADDED_RATIO = 1.6
MIN_THROUGHPUT_RATIO = 0.4
MAX_HTTP_ADDED_MS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How often the whole is started anew, and then rounds and calls a round at one caller and at 32.

    Where the kernel happens to put a process moves its figures as much as a busy minute does; many short rounds beat
    few long ones.
    """

    stacks: int
    rounds: int
    calls: int
    crowd_rounds: int
    crowd_calls: int
    sample_ratio: float


# One figure a target, for each round.
Rounds = list[dict[str, float]]


async def p50_ms(ask: Ask, calls: int) -> float:
    """The median time of calls one after the other."""
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        await ask()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


async def calls_per_s(ask: Ask, calls: int) -> float:
    """The throughput of 32 callers, each with one call at a time."""

    async def caller() -> None:
        for _ in range(calls // CALLERS):
            await ask()

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return calls // CALLERS * CALLERS / (time.perf_counter() - began)


def grpc_asker(port: int, key: str) -> Ask:
    """Retrieve over gRPC, bytes to bytes."""
    body = RETRIEVE.request(system="fixed", space_id="bench", query="what was said?").SerializeToString()
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(RETRIEVE.grpc_path)
    metadata = (("authorization", f"Bearer {key}"),)
    return lambda: call(body, metadata=metadata, timeout=30)


async def http_asker(port: int, key: str) -> Ask:
    """Retrieve over one HTTP/1.1 connection without a client library."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b'{"query":"what was said?"}'
    head = (
        "POST /v1/systems/fixed/spaces/bench/retrieve HTTP/1.1\r\nhost: gateway\r\n"
        f"authorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body

    async def ask() -> bytes:
        writer.write(request)
        answer = await read_head(reader)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the HTTP face answered {answer[:200]!r}")
        return await reader.readexactly(content_length(answer))

    return ask


async def interleaved(
    asks: Mapping[str, Ask], measure: Callable[[Ask, int], Awaitable[float]], rounds: int, calls: int
) -> Rounds:
    """One figure a target and round; the order turns with each round."""
    names = list(asks)
    figures = []
    for number in range(rounds):
        turned = names[number % len(names) :] + names[: number % len(names)]
        figures.append({name: await measure(asks[name], calls) for name in turned})
    return figures


async def measure(options: Options) -> tuple[Rounds, Rounds]:
    """The rounds at one caller, in ms, and at 32 callers, in calls a second."""
    alone: Rounds = []
    crowd: Rounds = []
    for _ in range(options.stacks):
        with tempfile.TemporaryDirectory() as folder, running(Path(folder), sample_ratio=options.sample_ratio) as stack:
            asks = grpc_askers(stack)
            over_http = await http_asker(stack.gateway_http, stack.key)
            every = {**asks, "gateway over HTTP": over_http}
            for ask in every.values():
                await p50_ms(ask, 200)
            alone += await interleaved(every, p50_ms, options.rounds, options.calls)
            crowd += await interleaved(asks, calls_per_s, options.crowd_rounds, options.crowd_calls)
    return alone, crowd


def grpc_askers(stack: Stack) -> dict[str, Ask]:
    """Everything that speaks gRPC."""
    ports = {"direct": stack.direct, "bare proxy": stack.proxy, "gateway": stack.gateway_grpc}
    if stack.nginx:
        ports["nginx"] = stack.nginx
    return {name: grpc_asker(port, stack.key) for name, port in ports.items()}


def report(alone: Rounds, crowd: Rounds) -> bool:
    """Prints the figures; tells whether every cap holds."""

    def added_ms(name: str) -> float:
        return statistics.median(one[name] - one["direct"] for one in alone)

    print(f"\np50 at one caller, ms, and what is added to the direct call (medians of {len(alone)} rounds)")
    for name in alone[0]:
        print(f"  {name:<18} {statistics.median(one[name] for one in alone):.3f}  +{added_ms(name):.3f}")
    print(f"\ncalls a second at {CALLERS} callers (medians of {len(crowd)} rounds)")
    for name in crowd[0]:
        print(f"  {name:<18} {statistics.median(one[name] for one in crowd):,.0f}")
    print("\ncaps")
    added = added_ms("gateway") / added_ms("bare proxy")
    over_http = statistics.median(one["gateway over HTTP"] - one["gateway"] for one in alone)
    held = [
        told("p50 added by the gateway over that of the bare proxy", added, "at most", MAX_ADDED_RATIO),
        told("p50 of the HTTP face over the gRPC face, ms", over_http, "at most", MAX_HTTP_ADDED_MS),
    ]
    if "nginx" in crowd[0]:
        share = statistics.median(one["gateway"] / one["nginx"] for one in crowd)
        held.append(told("throughput beside nginx grpc_pass", share, "at least", MIN_THROUGHPUT_RATIO))
    else:
        print("  throughput beside nginx grpc_pass: not measured, nginx is not installed")
    return all(held)


def told(what: str, figure: float, word: str, cap: float) -> bool:
    """Prints one cap and whether it holds."""
    holds = figure <= cap if word == "at most" else figure >= cap
    print(f"  {what}: {figure:.2f} ({word} {cap:g}) {'ok' if holds else 'BROKEN'}")
    return holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stacks", type=int, default=3, help="how often everything is started anew")
    parser.add_argument("--rounds", type=int, default=30, help="a stack, at one caller")
    parser.add_argument("--calls", type=int, default=50, help="a round at one caller")
    parser.add_argument("--crowd-rounds", type=int, default=3, help="a stack, at 32 callers")
    parser.add_argument("--crowd-calls", type=int, default=1600, help="a round at 32 callers")
    parser.add_argument("--sample-ratio", type=float, default=0.1, help="share of calls that are traced")
    options = Options(**vars(parser.parse_args()))
    print(f"gateway with keys, metrics, logs and traces ({options.sample_ratio:.0%} of the calls sampled)")
    sys.exit(0 if report(*uvloop.run(measure(options))) else 1)


if __name__ == "__main__":
    main()
