"""What a judge makes of answers whose verdict is known."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memdock_evaluator.answer.judge import LABELS, is_right
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.judging.agreement import Agreement, agreement
from memdock_evaluator.judging.panel import Member
from memdock_evaluator.judging.probes import Probe
from memdock_evaluator.results.plan import ModelFacts
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run.parallel import for_each, stream


@dataclass(frozen=True, slots=True, kw_only=True)
class KindErrors:
    """Of a kind of answer: how many were asked about, got another label, and got the wrong side of right and wrong."""

    probes: int
    mislabelled: int
    misjudged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A judge on some probes.

    `confusion[wanted][given]` counts labels, `given` 4 for none; `binary[wanted][given]` right (1) and wrong (0), 2 for
    none. `too_strict`: right answers that it called wrong; `too_kind`: wrong ones that it called right.
    """

    probes: int
    unscored: int
    same_label: int
    same_side: int
    too_strict: int
    too_kind: int
    confusion: tuple[tuple[int, ...], ...]
    binary: tuple[tuple[int, ...], ...]
    kinds: Mapping[str, KindErrors]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAudit:
    """One judge. `failed`: why it could not be asked about all of them; then there are no figures."""

    model: ModelFacts
    failed: str
    figures: Figures | None
    languages: Mapping[str, Figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surprise:
    """A probe that some judge gave another label than it must get."""

    topic: str
    kind: str
    language: str
    wanted: int
    given: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """All judges, by name, and how far they agree on what each of them was asked about."""

    judges: Mapping[str, JudgeAudit]
    agreement: Agreement
    surprises: tuple[Surprise, ...]


async def audit(members: Sequence[Member], probes: Sequence[Probe]) -> Audit:
    """Asks every judge about the probes of its languages, as many at once as its provider bears."""
    found = await asyncio.gather(*(_labels(member, probes) for member in members))
    given = {member.name: labels for member, (labels, _) in zip(members, found, strict=True)}
    failed = {member.name: why for member, (_, why) in zip(members, found, strict=True)}
    judges = {member.name: _judge(member, probes, given[member.name], failed[member.name]) for member in members}
    whole = {name: [its.get(n) for n in range(len(probes))] for name, its in given.items() if not failed[name]}
    return Audit(
        judges=judges,
        agreement=agreement(whole),
        surprises=tuple(
            Surprise(topic=probe.topic, kind=probe.kind, language=probe.item.language, wanted=probe.label, given=labels)
            for n, probe in enumerate(probes)
            if (labels := {name: its[n] for name, its in given.items() if n in its})
            and any(label != probe.label for label in labels.values())
        ),
    )


def figures(probes: Sequence[Probe], given: Sequence[int | None]) -> Figures:
    """A judge's labels against those that the probes must get."""
    pairs = list(zip(probes, given, strict=True))
    labels = Counter((probe.label, label) for probe, label in pairs)
    sides = Counter((is_right(probe.label), is_right(label)) for probe, label in pairs)
    columns: tuple[int | None, ...] = (*LABELS, None)
    kinds = dict.fromkeys(probe.kind for probe in probes)
    return Figures(
        probes=len(pairs),
        unscored=sum(label is None for label in given),
        same_label=sum(probe.label == label for probe, label in pairs),
        same_side=sides[False, False] + sides[True, True],
        too_strict=sides[True, False],
        too_kind=sides[False, True],
        confusion=tuple(tuple(labels[wanted, column] for column in columns) for wanted in LABELS),
        binary=tuple(tuple(sides[wanted, side] for side in (False, True, None)) for wanted in (False, True)),
        kinds={kind: _kind([pair for pair in pairs if pair[0].kind == kind]) for kind in kinds},
    )


def _kind(of_kind: Sequence[tuple[Probe, int | None]]) -> KindErrors:
    return KindErrors(
        probes=len(of_kind),
        mislabelled=sum(label is not None and label != probe.label for probe, label in of_kind),
        misjudged=sum(label is not None and is_right(label) != is_right(probe.label) for probe, label in of_kind),
    )


def _judge(member: Member, probes: Sequence[Probe], given: Mapping[int, int | None], failed: str) -> JudgeAudit:
    asked = [(probe, given[n]) for n, probe in enumerate(probes) if n in given]
    of = {language: [pair for pair in asked if pair[0].item.language == language] for language in member.languages}
    whole = {language: _of(pairs) for language, pairs in of.items() if pairs}
    return JudgeAudit(
        model=member.judge.facts,
        failed=failed,
        figures=None if failed else _of(asked),
        languages={} if failed else whole,
    )


def _of(pairs: Sequence[tuple[Probe, int | None]]) -> Figures:
    return figures([probe for probe, _ in pairs], [label for _, label in pairs])


async def _labels(member: Member, probes: Sequence[Probe]) -> tuple[dict[int, int | None], str]:
    """The labels by the probe's number, and why there are not more of them."""
    labels: dict[int, int | None] = {}

    async def ask(n: int) -> None:
        try:
            labels[n] = (await member.judge.judge(probes[n].item, repeat=0)).label
        except Fault as fault:
            if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
                raise
            labels[n] = None

    mine = [n for n, probe in enumerate(probes) if probe.item.language in member.languages]
    try:
        await for_each(stream(mine), ask, limit=len(mine))
    except Fault as fault:
        return labels, fault.detail
    except RunStoppedError as stop:
        return labels, str(stop)
    return labels, ""
