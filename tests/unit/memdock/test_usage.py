"""Usage and stages reach the call that caused them."""

import asyncio
import threading

from memdock import usage
from memdock.types import ModelUsage


async def test_counts_from_tasks_and_threads_reach_their_call() -> None:
    async def call(name: str) -> tuple[ModelUsage, ...]:
        with usage.collect() as meter:

            def count() -> None:
                usage.count(model=name, purpose="embedding", input_tokens=2)

            count()
            await asyncio.gather(asyncio.to_thread(count), asyncio.create_task(asyncio.to_thread(count)))
        return meter.models

    first, second = await asyncio.gather(call("a"), call("b"))
    assert first == (ModelUsage(model="a", purpose="embedding", calls=3, input_tokens=6),)
    assert second == (ModelUsage(model="b", purpose="embedding", calls=3, input_tokens=6),)


def test_outside_of_a_call_nothing_happens() -> None:
    usage.count(model="m", purpose="embedding")
    with usage.stage("embed"):
        pass
    with usage.collect() as meter:
        pass
    assert (meter.models, meter.timing) == ((), ())


def test_stages_add_up_in_the_order_of_their_first_end() -> None:
    with usage.collect() as meter:
        for stage in ("embed", "store", "embed"):
            with usage.stage(stage):
                threading.Event().wait(0.002)
    assert [one.stage for one in meter.timing] == ["embed", "store"]
    assert meter.timing[0].ms >= 4


def test_merging_keeps_models_and_purposes_apart() -> None:
    one = ModelUsage(model="m", purpose="embedding", calls=1, input_tokens=2**32 - 2)
    merged = usage.merge([one, ModelUsage(model="a", purpose="search", calls=1, estimated=True), one])
    assert merged == (
        ModelUsage(model="a", purpose="search", calls=1, estimated=True),
        ModelUsage(model="m", purpose="embedding", calls=2, input_tokens=2**32 - 1),
    )
