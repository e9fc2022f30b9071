"""Several judges as one: of each language the first is primary, the others judge the same answers beside it."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memdock_evaluator.answer.endpoint import NamedJudge
from memdock_evaluator.answer.judge import Judge, ToJudge, Verdict
from memdock_evaluator.answer.opening import open_judge
from memdock_evaluator.answer.providers import Providers
from memdock_evaluator.faults import Fault
from memdock_evaluator.results.plan import JudgeFacts, ModelFacts
from memdock_evaluator.results.rows import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A judge with the languages of the run that it serves."""

    name: str
    languages: tuple[str, ...]
    judge: Judge


class Panel:
    """A `Judge`: its verdict is the primary's, with those of the others in `further`."""

    def __init__(self, members: Sequence[Member], languages: Iterable[str]) -> None:
        """Of `members` each language has at least one."""
        self.members = tuple(members)
        self._of = {code: [each for each in members if code in each.languages] for code in languages}

    @property
    def facts(self) -> ModelFacts:
        """The primaries in one: where they differ by language, their names stand behind each other."""
        primaries = {code: members[0] for code, members in self._of.items()}
        each = list({member.name: member.judge.facts for member in primaries.values()}.values())
        if len(each) == 1:
            return each[0]
        by_language = {code: member.judge.facts for code, member in primaries.items()}
        return ModelFacts(
            kind=", ".join(dict.fromkeys(facts.kind for facts in each)),
            model=", ".join(f"{code}: {facts.model}" for code, facts in by_language.items()),
            host=", ".join(dict.fromkeys(facts.host for facts in each)),
            form=", ".join(dict.fromkeys(facts.form for facts in each)),
            prompts={code: facts.prompts[code] for code, facts in by_language.items() if code in facts.prompts},
            rubrics={code: facts.rubrics[code] for code, facts in by_language.items() if code in facts.rubrics},
        )

    @property
    def each_facts(self) -> Mapping[str, JudgeFacts]:
        """What the manifest says of each judge, by name."""
        return {
            member.name: JudgeFacts(
                languages=member.languages,
                primary_for=tuple(code for code, members in self._of.items() if members[0] is member),
                model=member.judge.facts,
            )
            for member in self.members
        }

    async def judge(self, item: ToJudge, *, repeat: int) -> Verdict:
        """The primary's verdict with the others', all asked at once and heard to their ends.

        What a further judge's provider declines leaves it unscored there. Any other fault of any judge is that of the
        whole, so that the question is judged again when the run goes on.
        """
        primary, *others = self._of[item.language]
        beside = (_beside(each, item, repeat) for each in others)
        heard = await asyncio.gather(primary.judge.judge(item, repeat=repeat), *beside, return_exceptions=True)
        verdict, *further = _all_of(heard)
        return replace(verdict, further={each.name: theirs for each, theirs in zip(others, further, strict=True)})

    async def close(self) -> None:
        """Closes them all."""
        for member in self.members:
            await member.judge.close()


def open_members(
    judges: Sequence[NamedJudge], languages: Sequence[str], *, seed: int, providers: Providers | None = None
) -> Sequence[Member]:
    """The judges that serve any of `languages`; raises `PromptError`."""
    served = {judge.name: tuple(code for code in languages if judge.serves(code)) for judge in judges}
    return [
        Member(
            name=judge.name,
            languages=served[judge.name],
            judge=open_judge(judge.settings, served[judge.name], seed=seed, providers=providers),
        )
        for judge in judges
        if served[judge.name]
    ]


def _all_of(heard: Iterable[Verdict | BaseException]) -> Sequence[Verdict]:
    """The verdicts, where nothing was raised; else what stops the run goes before what fails the question."""
    found = list(heard)
    raised = [each for each in found if isinstance(each, BaseException)]
    if raised:
        raise min(raised, key=lambda each: isinstance(each, Fault))
    return [each for each in found if isinstance(each, Verdict)]


async def _beside(member: Member, item: ToJudge, repeat: int) -> Verdict:
    try:
        return await member.judge.judge(item, repeat=repeat)
    except Fault as fault:
        if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
            raise
        return Verdict(label=None, note=fault.detail)
