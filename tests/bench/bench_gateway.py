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
    """Rounds and calls a round at one caller, then at 32; many short rounds beat few long ones."""

    rounds: int
    calls: int
    crowd_rounds: int
    crowd_calls: int


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
) -> list[dict[str, float]]:
    """One figure a target and round; the order turns with each round."""
    names = list(asks)
    figures = []
    for number in range(rounds):
        turned = names[number % len(names) :] + names[: number % len(names)]
        figures.append({name: await measure(asks[name], calls) for name in turned})
    return figures


async def measure(stack: Stack, options: Options) -> list[bool]:
    """Prints each comparison; tells which caps hold."""
    over_grpc = {"direct": stack.direct, "bare proxy": stack.proxy, "gateway": stack.gateway_grpc}
    if stack.nginx:
        over_grpc["nginx"] = stack.nginx
    asks = {name: grpc_asker(port, stack.key) for name, port in over_grpc.items()}
    asks["gateway over HTTP"] = await http_asker(stack.gateway_http, stack.key)
    for ask in asks.values():
        await p50_ms(ask, 200)

    alone = await interleaved(asks, p50_ms, options.rounds, options.calls)
    print(f"\np50 at one caller, ms, and what is added to the direct call ({options.rounds} rounds of {options.calls})")
    added_ms = {name: statistics.median(one[name] - one["direct"] for one in alone) for name in asks}
    for name in asks:
        print(f"  {name:<18} {statistics.median(one[name] for one in alone):.3f}  +{added_ms[name]:.3f}")

    del asks["gateway over HTTP"]
    crowd = await interleaved(asks, calls_per_s, options.crowd_rounds, options.crowd_calls)
    print(f"\ncalls a second at {CALLERS} callers ({options.crowd_rounds} rounds of {options.crowd_calls})")
    for name in asks:
        print(f"  {name:<18} {statistics.median(one[name] for one in crowd):,.0f}")

    print("\ncaps")
    added = added_ms["gateway"] / added_ms["bare proxy"]
    over_http = statistics.median(one["gateway over HTTP"] - one["gateway"] for one in alone)
    held = [
        told("p50 added by the gateway over that of the bare proxy", added, "at most", MAX_ADDED_RATIO),
        told("p50 of the HTTP face over the gRPC face, ms", over_http, "at most", MAX_HTTP_ADDED_MS),
    ]
    if stack.nginx:
        share = statistics.median(one["gateway"] / one["nginx"] for one in crowd)
        held.append(told("throughput beside nginx grpc_pass", share, "at least", MIN_THROUGHPUT_RATIO))
    else:
        print("  throughput beside nginx grpc_pass: not measured, nginx is not installed")
    return held


def told(what: str, figure: float, word: str, cap: float) -> bool:
    """Prints one cap and whether it holds."""
    holds = figure <= cap if word == "at most" else figure >= cap
    print(f"  {what}: {figure:.2f} ({word} {cap:g}) {'ok' if holds else 'BROKEN'}")
    return holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--calls", type=int, default=50, help="a round at one caller")
    parser.add_argument("--crowd-rounds", type=int, default=9)
    parser.add_argument("--crowd-calls", type=int, default=1600, help="a round at 32 callers")
    parser.add_argument("--sample-ratio", type=float, default=0.1, help="share of calls that are traced")
    parsed = parser.parse_args()
    options = Options(
        rounds=parsed.rounds,
        calls=parsed.calls,
        crowd_rounds=parsed.crowd_rounds,
        crowd_calls=parsed.crowd_calls,
    )
    print(f"gateway with keys, metrics, logs and traces ({parsed.sample_ratio:.0%} of the calls sampled)")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), sample_ratio=parsed.sample_ratio) as stack:
        held = uvloop.run(measure(stack, options))
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
