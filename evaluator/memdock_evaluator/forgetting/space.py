"""One dialogue in one space: stored, asked, told to forget, asked again, sent again late, asked once more."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from memdock.types import Feature, Memory, TurnRecord
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.forgetting.modes import Mode, Scope, selections
from memdock_evaluator.forgetting.rows import Claim
from memdock_evaluator.results.records import Blame
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run.parallel import for_each, stream
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.requests import groups
from memdock_evaluator.run.settings import IngestUnit, RunSettings
from memdock_evaluator.run.settling import blame_of
from memdock_evaluator.suites.filling import fill, settle
from memdock_evaluator.suites.system import ErasableSystem

_ONE_BY_ONE = IngestUnit(name="turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that the space shows at one moment, by question; `faults`: those that could not be asked.

    `listed` is `None` where the system does not list its memories.
    """

    at_k: Mapping[str, Sequence[Memory]]
    deep: Mapping[str, Sequence[Memory]]
    listed: Sequence[Memory] | None
    turns: Mapping[str, TurnRecord]
    faults: Mapping[str, Fault]

    @property
    def memories(self) -> Iterator[Memory]:
        """Every memory that was met, some of them several times."""
        for found in (*self.at_k.values(), *self.deep.values(), self.listed or ()):
            yield from found


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """How a Forget ended: the turns that the system says went, and what it says is left; or why it failed."""

    turn_ids: frozenset[str] = frozenset()
    claims: tuple[Claim, ...] = ()
    blame: Blame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The calls on one space. Methods raise `Fault` or `RunStoppedError` unless they say otherwise."""

    system: ErasableSystem
    space_id: str
    dialogue: Dialogue
    settings: RunSettings
    progress: Progress

    async def fill(self) -> None:
        """Stores the dialogue, in a space that is emptied first."""
        await fill(self.system, self.space_id, self.dialogue, self.settings, self.progress)

    async def look(self, deep: Sequence[Question], shallow: Sequence[Question] = ()) -> Seen:
        """Asks every question at k, the `deep` ones also as deep as can be; lists turns, and memories where it can."""
        at_k: dict[str, Sequence[Memory]] = {}
        at_depth: dict[str, Sequence[Memory]] = {}
        faults: dict[str, Fault] = {}
        look_deep = {question.question_id for question in deep}

        async def ask(question: Question) -> None:
            try:
                at_k[question.question_id] = await self._retrieve(question, self.settings.ks[0])
                if question.question_id in look_deep:
                    at_depth[question.question_id] = await self._retrieve(question, self.system.deep_k)
            except Fault as fault:
                faults[question.question_id] = fault
            self.progress.advance(Work.RETRIEVALS)

        await for_each(stream((*deep, *shallow)), ask, limit=self.settings.parallel_questions)
        can_list = self.system.declares(Feature.LIST_MEMORIES)
        return Seen(
            at_k=at_k,
            deep=at_depth,
            listed=await self.system.list_memories(self.space_id) if can_list else None,
            turns=await self.system.turns_by_id(self.space_id),
            faults=faults,
        )

    async def forget(self, mode: Mode, scope: Scope) -> Erased:
        """Erases; a system that fails at it is told by the result, since what is left is measured all the same."""
        turn_ids: set[str] = set()
        claims: list[Claim] = []
        for selection in selections(mode, scope.ids):
            try:
                forgotten = await self.system.forget(self.space_id, selection)
            except Fault as fault:
                if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
                    raise
                self.progress.say(f"{self.place}: Forget by {mode} failed: {fault.detail} ({fault.reason})")
                return Erased(turn_ids=frozenset(turn_ids), claims=tuple(claims), blame=blame_of(fault))
            turn_ids.update(forgotten.erased_turn_ids)
            claims += [
                Claim(component=left.component.value, items=left.items, verified=left.verified)
                for left in forgotten.residual
            ]
        return Erased(turn_ids=frozenset(turn_ids), claims=tuple(claims))

    async def send_again(self, turn_ids: Set[str]) -> None:
        """A late retry of turns, each alone; one that the system refuses is not back, which is all that matters."""
        for turns in groups(self.dialogue, _ONE_BY_ONE, lambda turn: turn.turn_id in turn_ids):
            try:
                await self.system.add_turns(self.space_id, turns)
            except Fault as fault:
                if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
                    raise
        await settle(self.system, self.space_id, self.settings)

    async def close(self) -> bool:
        """Resets it; whether that went well. Raises nothing."""
        try:
            await self.system.reset(self.space_id)
        except (Fault, RunStoppedError) as fault:
            self.progress.say(f"{self.place}: space {self.space_id} was not reset: {fault}")
            return False
        return True

    @property
    def place(self) -> str:
        """How a sentence about it begins."""
        return f"{self.system.name}: dialogue {self.dialogue.dialogue_id} ({self.dialogue.language})"

    async def _retrieve(self, question: Question, k: int) -> Sequence[Memory]:
        return (await self.system.retrieve(self.space_id, question.text, k=k)).result.memories[:k]
