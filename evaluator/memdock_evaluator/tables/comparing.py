"""The tables of what differs from what, and how surely."""

from collections.abc import Callable, Iterator
from operator import attrgetter

from memdock_evaluator.statistics.plan import JUDGES_DIFFER, Contrast, Side
from memdock_evaluator.statistics.slices import OVERALL, Slice
from memdock_evaluator.summary.comparisons import Comparisons
from memdock_evaluator.tables.shape import Cell, Table, percent, rounded


def comparing_tables(comparisons: Comparisons) -> Iterator[Table]:
    """All of them, contrasts first."""
    yield _contrasts(comparisons)
    yield _scores(comparisons)
    yield _ranks(comparisons)
    yield _pairs(comparisons)
    yield _best(comparisons)
    yield _repeats(comparisons)
    yield _languages(comparisons)
    yield _scripts(comparisons)


def contrast_label(
    contrast: Contrast, *, unit: Callable[[str], str] = str, value: Callable[[Slice], str] = attrgetter("value")
) -> str:
    """ "rag-dense − rag-hybrid, en"; what both sides share is said once.

    `unit` names a system or a family, `value` a slice: by default as the files do.
    """
    first, second = contrast.first, contrast.second
    languages = {term.language for side in (first, second) for term in side.terms}
    shared_language = f", {languages.pop()}" if len(languages) == 1 else ""
    if first.terms == second.terms:
        units = _terms(first, with_language=not shared_language, unit=unit)
        return f"{units}: {value(first.slice)} − {value(second.slice)}{shared_language}"
    slice_ = "" if first.slice == OVERALL else f": {value(first.slice)}"
    sides = [_terms(side, with_language=not shared_language, unit=unit) for side in (first, second)]
    if first.slice != second.slice:
        return f"({sides[0]}: {value(first.slice)}) − ({sides[1]}: {value(second.slice)}){shared_language}"
    shown = [f"({side})" if len(of.terms) > 1 else side for side, of in zip(sides, (first, second), strict=True)]
    return f"{shown[0]} − {shown[1]}{slice_}{shared_language}"


def _terms(side: Side, *, with_language: bool, unit: Callable[[str], str]) -> str:
    words = ""
    for term in side.terms:
        word = f"{unit(term.unit)} {term.language}" if with_language else unit(term.unit)
        words += (f" {'−' if term.sign < 0 else '+'} " if words else "") + word
    return words


def _contrasts(comparisons: Comparisons) -> Table:
    return Table(
        name="contrasts",
        title="Contrasts",
        columns=(
            *("kind", "block", "contrast", "axis", "questions", "dialogues", "first", "second", "difference"),
            *("SE by dialogue", "95% low", "95% high", "p", "p Holm", "bootstrap low", "bootstrap high"),
            *("smallest detectable", "by questions low", "by questions high", "p Holm by questions"),
            *("lowest possible", "highest possible"),
        ),
        rows=tuple(
            (
                *(block.kind.value, block.name, contrast_label(one.contrast), one.contrast.first.slice.axis),
                *(one.n, one.n_dialogues, percent(one.first), percent(one.second), percent(one.estimate)),
                *(percent(one.clustered_error), percent(one.clustered.low), percent(one.clustered.high)),
                *(_p(one.clustered.p), _p(one.clustered.p_holm)),
                *(percent(one.dialogue_bootstrap.low), percent(one.dialogue_bootstrap.high)),
                _detectable(one.smallest_detectable, one.contrast.reach),
                *(percent(one.question_bootstrap.low), percent(one.question_bootstrap.high)),
                *(_p(one.question_bootstrap.p_holm), percent(one.least), percent(one.most)),
            )
            for block in comparisons.analysis.blocks
            for one in block.differences
        ),
        notes=comparisons.caveats,
    )


def _scores(comparisons: Comparisons) -> Table:
    """Every system and family in every slice, with those that the paper makes out of others."""
    return Table(
        name="scores",
        title="Scores of systems and families in every slice",
        columns=(
            *("measure", "system or family", "language", "axis", "slice", "asked", "questions", "dialogues", "score"),
            *("SE", "SE by dialogue", "95% low", "95% high", "lowest possible", "highest possible"),
        ),
        rows=tuple(
            (
                *(one.measure, one.unit, one.language, one.axis, one.value, one.asked, one.n, one.n_dialogues),
                *map(percent, (one.score, one.standard_error, one.clustered_error, one.low, one.high)),
                *map(percent, (one.least, one.most)),
            )
            for one in comparisons.analysis.scores
        ),
        notes=(
            "A family's score on a question is the mean of its systems' scores; systems without times "
            f"({', '.join(comparisons.atemporal) or 'none here'}) leave the slices of time.",
        ),
    )


def _ranks(comparisons: Comparisons) -> Table:
    rankings = comparisons.analysis.rankings
    return Table(
        name="ranks",
        title="Rank intervals and the smallest detectable difference",
        columns=("family", "language", "system", "accuracy", "rank best", "rank worst", "smallest detectable"),
        rows=tuple(
            (
                *(ranking.family, ranking.language, rank.system, percent(rank.accuracy), rank.best, rank.worst),
                _detectable(ranking.smallest_detectable, 1),
            )
            for ranking in rankings
            for rank in ranking.ranks
        ),
        notes=(
            "All intervals of a family hold at once with 95 % confidence. The smallest detectable difference of two "
            f"systems is the median over the pairs, at alpha {comparisons.analysis.alpha:g} and power "
            f"{comparisons.analysis.power:g}.",
            *(f"{each.family}, {each.language}: not ranked, {each.refused}." for each in rankings if each.refused),
        ),
    )


def _pairs(comparisons: Comparisons) -> Table:
    families = comparisons.analysis.pairs
    return Table(
        name="pairs",
        title="Every two systems in every slice",
        columns=(
            *("language", "first", "second", "axis", "slice", "questions", "dialogues", "difference"),
            *("SE by dialogue", "p max-T"),
        ),
        rows=tuple(
            (
                *(family.language, pair.first, pair.second, pair.axis, pair.value, pair.n, pair.n_dialogues),
                *(percent(pair.estimate), percent(pair.clustered_error), _p(pair.p)),
            )
            for family in families
            for pair in family.pairs
        ),
        notes=(
            "p is adjusted over all pairs and slices of a language (max-T, step-down, signs flipped by dialogue).",
            *(f"{each.language}: not tested, {each.refused}." for each in families if each.refused),
            *(
                f"{each.language}: {each.left_out} pairs in slices of too few dialogues are left out."
                for each in families
                if each.left_out and not each.refused
            ),
        ),
    )


def _best(comparisons: Comparisons) -> Table:
    return Table(
        name="best",
        title="Best observed of each family",
        columns=("family", "language", "axis", "slice", "systems", "accuracy"),
        rows=tuple(
            (one.family, one.language, one.axis, one.value, ", ".join(one.systems), percent(one.score))
            for one in comparisons.analysis.best
        ),
        notes=("Picked for being best: no test, and too high a guess of its next score.",),
    )


def _repeats(comparisons: Comparisons) -> Table:
    """Standard errors of accuracy by what would be done anew."""
    found = comparisons.repeats
    return Table(
        name="repeats",
        title="Chance of ingest, answer, judge and questions",
        columns=(
            *("system", "language", "questions", "ingests", "answers", "judgements"),
            *("SE ingest", "SE answer", "SE judge", "SE all repeated", "SE questions"),
        ),
        rows=tuple(
            (
                *(each.system, each.language, each.n, each.ingests, each.answers, each.judgements),
                *(percent(each.components.ingest.standard_error), percent(each.components.answer.standard_error)),
                *(percent(each.components.judge.standard_error), percent(each.components.all_steps)),
                percent(each.components.questions.standard_error),
            )
            for each in found.systems
            if each.components is not None
        ),
        notes=(
            f"By {found.method} ({found.source}). A step that was done once has no error of its own: its chance stands "
            "in the step before it (a verdict's in the answer's, an answer's in the ingest's, all in the questions').",
        ),
    )


def _detectable(value: float | None, reach: float) -> Cell:
    """In points; a difference that cannot be that large cannot be found."""
    return "not detectable" if value is not None and value > reach else percent(value)


def _p(value: float | None) -> str | None:
    """Three digits, since two say too little of a p-value."""
    if value is None:
        return None
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _languages(comparisons: Comparisons) -> Table:
    found = comparisons.languages
    return Table(
        name="languages",
        title="The same questions in two languages",
        columns=(
            *("system", "first", "second", "questions", "dialogues", "right in both", "first only", "second only"),
            *("neither", "difference", "SE by dialogue", "95% low", "95% high", "p"),
        ),
        rows=tuple(
            (
                *(pair.system, pair.first, pair.second, pair.n, pair.n_dialogues),
                *map(rounded, (pair.both, pair.only_first, pair.only_second, pair.neither)),
                *(percent(pair.difference), percent(pair.clustered_error)),
                *(percent(pair.low), percent(pair.high), _p(pair.p)),
            )
            for pair in found.pairs
        ),
        notes=(f"By {found.method} ({found.source}). Not corrected for the number of systems. {JUDGES_DIFFER}",),
    )


def _scripts(comparisons: Comparisons) -> Table:
    return Table(
        name="scripts",
        title="Memories in another script than their questions",
        columns=("system", "language", "memories", "in another script", "share", "95% low", "95% high", "by script"),
        rows=tuple(
            (
                *(each.system, each.language, each.n, each.other, percent(each.share)),
                *(percent(each.low), percent(each.high)),
                ", ".join(f"{script.lower()} {count}" for script, count in each.scripts.items()),
            )
            for each in comparisons.languages.memories
        ),
        notes=(
            "A memory counts as often as it was given for a question; its script is that of most letters among "
            "its first 300 characters.",
        ),
    )
