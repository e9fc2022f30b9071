"""How much of LoCoMo's evidence the reference memory finds: `PYTHONPATH=tests python -m bench.bench_locomo FILE`.

FILE is LoCoMo's own JSON, whole or a part (https://github.com/snap-research/locomo, for evaluation only). The stack is
started in `--work` as `memdock-eval stack` starts it, with a third system that ranks by keywords alone; dialogues go
through the gateway, a pair of turns a request, and each question retrieves 10 memories.

Printed are means of recall@10 over questions, adversarial ones included (their evidence is the nearest topic, which a
memory should find as well). A piece of evidence is by `pair` a memory of the system that an evidence turn stands in, by
`turn` the turn, by `session` its session. The evaluator's own figures leave adversarial questions out; they stand
beside.
"""

import argparse
import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memdock.client import AsyncClient, connect_async
from memdock.types import Memory
from memdock_evaluator.dataset import Dialogue, Question, open_dataset
from memdock_evaluator.interrupting import noticing
from memdock_evaluator.run.requests import groups
from memdock_evaluator.run.settings import IngestUnit
from memdock_evaluator.stack import LocalStack, ReferenceSystem, local_stack

K = 10
SYSTEMS = tuple(ReferenceSystem(name=f"rag-{fusion}", fusion=fusion) for fusion in ("dense", "keyword", "hybrid"))
AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Recall@10 of one question, 0 to 1."""

    adversarial: bool
    pair: float
    turn: float
    session: float


def recall(memories: Sequence[Memory], found: Sequence[Memory], question: Question) -> Found:
    """What `found` holds of the question's evidence, of `memories`, which are all of the space."""
    evidence = set(question.evidence_turns)
    pairs = {memory.memory_id for memory in memories if evidence & turns_of(memory)}
    turns = set().union(*map(turns_of, found))
    sessions = {source.session_id for memory in found for source in memory.sources}
    return Found(
        adversarial=question.abstention,
        pair=share(pairs, {memory.memory_id for memory in found}),
        turn=share(evidence, turns),
        session=share(set(question.evidence_sessions), sessions),
    )


def turns_of(memory: Memory) -> set[str]:
    """The turns that a memory is made of."""
    return {source.turn_id for source in memory.sources}


def share(wanted: set[str], found: set[str]) -> float:
    """How much of what is wanted was found."""
    return len(wanted & found) / len(wanted)


async def ask(client: AsyncClient, dialogue: Dialogue) -> list[Found]:
    """Stores a dialogue in a space of its own and asks its questions that have evidence."""
    space = f"locomo-{dialogue.dialogue_id}"
    for group in groups(dialogue, IngestUnit(name="pair")):
        await client.add_turns(space, group)
    flushed = await client.flush(space, timeout_s=3600)
    assert (flushed.done, flushed.failed_count) == (True, 0), flushed
    memories = [memory async for memory in client.list_memories(space)]
    questions = [question for question in dialogue.questions if question.evidence_turns]
    return [recall(memories, (await client.retrieve(space, q.text, top_k=K)).memories, q) for q in questions]


async def measure(stack: LocalStack, system: str, dialogues: Sequence[Dialogue]) -> list[Found]:
    """All questions of all dialogues, a few dialogues at once."""
    places = asyncio.Semaphore(AT_ONCE)
    key = stack.key_file.read_text().strip()
    async with connect_async(stack.grpc_url, system=system, key=key, timeout_s=60) as client:

        async def one(dialogue: Dialogue) -> list[Found]:
            async with places:
                return await ask(client, dialogue)

        return [found for each in await asyncio.gather(*map(one, dialogues)) for found in each]


def tell(system: str, found: Sequence[Found]) -> None:
    """One line a way of counting."""
    for what, rows in (
        ("all questions", found),
        ("without adversarial", [each for each in found if not each.adversarial]),
    ):
        means = {kind: statistics.mean(getattr(each, kind) for each in rows) for kind in ("pair", "turn", "session")}
        figures = "   ".join(f"{kind} {mean:.3f}" for kind, mean in means.items())
        print(f"{system:<12} {what:<20} {len(rows):>5,} questions   {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="LoCoMo's JSON")
    parser.add_argument("--work", type=Path, default=Path(".memdock/locomo"), help="folder of the stack")
    parsed = parser.parse_args()
    dialogues = list(open_dataset(parsed.file, format="locomo"))
    turns = sum(1 for dialogue in dialogues for _ in dialogue.turns)
    print(f"LoCoMo: {len(dialogues)} dialogues, {turns:,} turns; recall@{K}", flush=True)
    cache = parsed.work.with_name("locomo-embeddings.sqlite")
    with (
        noticing() as notice,
        local_stack(parsed.work, notice, fresh=True, systems=SYSTEMS, embedding_cache=cache) as stack,
    ):
        for system in stack.systems:
            tell(system, asyncio.run(measure(stack, system, dialogues)))


if __name__ == "__main__":
    main()
