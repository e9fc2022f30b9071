"""The rows of the suite: `targets.jsonl`, whose evidence was forgotten, and `neighbours.jsonl`, whose was not.

No memory id, no run id and no time of the clock, so that two runs on a deterministic system give the same bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import TypeAdapter

from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.forgetting.traces import Trace
from memdock_evaluator.results.records import Blame, Kind
from memdock_evaluator.results.rows import FurtherVerdict
from memdock_evaluator.run.settling import settled

TARGETS, NEIGHBOURS = "targets.jsonl", "neighbours.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found at one moment: among `k` memories, among `deep_k`, and among all where the system lists them.

    `states`: of the turns that were to be forgotten, as ListTurns gives them; a turn that it does not list is left out.
    """

    at_k: Trace = field(default_factory=Trace)
    deep: Trace = field(default_factory=Trace)
    listed: Trace | None = None
    states: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer from the memories of one moment; `correct` is `None` where the verdict could not be read.

    `verdicts`, by name: those of the judges beside the primary one, which decide nothing.
    """

    text: str
    abstained: bool
    correct: bool | None
    verdicts: Mapping[str, FurtherVerdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the system's answer to Forget says of a component: items left, and whether it searched for them."""

    component: str
    items: int
    verified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """A question whose evidence was forgotten, in one mode.

    `blame`: why it could not be measured. `forget_blame`: why Forget failed; what is left is measured all the same.
    `wanted` is what was looked for; empty `turns`: there was nothing to forget. `left`, `revived`: the signs (see
    `traces.left`; "state" for a turn that is listed and not FORGOTTEN) after Forget, and those that came with the late
    retry. `replies`: the answers before and after, where an answer model was given.
    """

    system: str
    language: str
    dialogue_id: str
    mode: Mode
    question_id: str
    question: str
    blame: Blame | None = None
    forget_blame: Blame | None = None
    evidence_turns: tuple[str, ...]
    wanted: Trace = field(default_factory=Trace)
    before: Look = field(default_factory=Look)
    after: Look = field(default_factory=Look)
    retried: Look = field(default_factory=Look)
    left: tuple[str, ...] = ()
    revived: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    replies: tuple[Reply, Reply] | None = None

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What names the row, and its place in the file."""
        return self.system, self.language, self.dialogue_id, self.mode, self.question_id


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourRow:
    """A question of the same dialogue no turn of whose evidence was to be forgotten.

    `taken`: turns of its evidence that the system had before and has no more: FORGOTTEN or not in ListTurns, or without
    a memory in ListMemories.
    """

    system: str
    language: str
    dialogue_id: str
    mode: Mode
    question_id: str
    blame: Blame | None = None
    wanted: Trace
    before_at_k: Trace = field(default_factory=Trace)
    after_at_k: Trace = field(default_factory=Trace)
    taken: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What names the row, and its place in the file."""
        return self.system, self.language, self.dialogue_id, self.mode, self.question_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRows:
    """All rows of one dialogue in one system and mode, kept as it ends."""

    targets: tuple[TargetRow, ...]
    neighbours: tuple[NeighbourRow, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether nothing of it failed for want of infrastructure."""
        blames = [*(row.blame for row in self.targets), *(row.blame for row in self.neighbours)]
        return all(map(settled, blames))


CASES = MappingProxyType({mode: Kind(f"by-{mode}", TypeAdapter(CaseRows)) for mode in Mode})
"""By mode, the part that keeps a case."""
