"""The compiled JSON beside protobuf's own: medians of interleaved rounds, as microseconds and as ratios.

`python tests/bench/bench_wire.py [ROUNDS]`
"""

import statistics
import sys
import time
from collections.abc import Callable

import orjson
from google.protobuf import json_format

from memdock.v1 import memory_pb2 as pb
from memdock.wire import answer_from_json, from_bytes, from_json, to_json

Work = Callable[[], object]


def add_turns_body(count: int) -> bytes:
    """A request of `count` turns of 180 Cyrillic characters."""
    turns = [
        {
            "turn_id": f"s1-t{index}",
            "session_id": "s1",
            "role": "user",
            "text": "слово " * 30,
            "time": "2024-05-01T09:30:00+03:00",
            "time_zone": "Europe/Moscow",
        }
        for index in range(count)
    ]
    return orjson.dumps({"turns": turns})


def answer_of(count: int) -> pb.RetrieveResponse:
    """An answer of `count` memories of 200 characters with a time and a source."""
    return pb.RetrieveResponse(
        memories=[
            pb.Memory(
                memory_id=f"m{index}",
                text="x" * 200,
                score=0.5,
                kind="turn",
                time={"seconds": 1_714_555_800},
                sources=[pb.Source(session_id="s1", turn_id=f"s1-t{index}")],
            )
            for index in range(count)
        ]
    )


def elapsed_us(work: Work, repeats: int) -> float:
    """Microseconds of one call of `work`."""
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - started) / repeats * 1e6


def compare(title: str, repeats: int, rounds: int, **works: Work) -> None:
    """Prints each work's median, and the median of its ratio to the first one within a round."""
    rows = [{name: elapsed_us(work, repeats) for name, work in works.items()} for _ in range(rounds)]
    first = next(iter(works))
    print(title)
    for name in works:
        median_us = statistics.median(row[name] for row in rows)
        ratio = statistics.median(row[name] / row[first] for row in rows)
        print(f"  {name:24} {median_us:10.1f} us  {ratio:6.2f}")


def main() -> None:
    """Runs all comparisons."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    for count, repeats in ((2, 100), (256, 2)):
        body = add_turns_body(count)
        raw = from_json(pb.AddTurnsRequest, body).SerializeToString()
        compare(
            f"read AddTurns of {count}",
            repeats,
            rounds,
            plan=lambda body=body: from_json(pb.AddTurnsRequest, body),  # type: ignore[misc]
            parse_dict=lambda body=body: json_format.ParseDict(orjson.loads(body), pb.AddTurnsRequest()),  # type: ignore[misc]
            parse=lambda body=body: json_format.Parse(body, pb.AddTurnsRequest()),  # type: ignore[misc]
            protobuf_bytes=lambda raw=raw: from_bytes(pb.AddTurnsRequest, raw),  # type: ignore[misc]
        )
    answer = answer_of(10)
    body = to_json(answer)
    compare(
        "write an answer of 10 memories",
        50,
        rounds,
        plan=lambda: to_json(answer),
        message_to_dict=lambda: orjson.dumps(json_format.MessageToDict(answer, preserving_proto_field_name=True)),
        message_to_json=lambda: json_format.MessageToJson(answer, preserving_proto_field_name=True),
    )
    compare(
        "read an answer of 10 memories",
        50,
        rounds,
        plan=lambda: answer_from_json(pb.RetrieveResponse, body),
        parse_dict=lambda: json_format.ParseDict(orjson.loads(body), pb.RetrieveResponse()),
        parse=lambda: json_format.Parse(body, pb.RetrieveResponse()),
    )


if __name__ == "__main__":
    main()
