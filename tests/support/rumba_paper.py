"""Figures printed in the RUMBA paper (arXiv:2607.21447), and a result matrix that has them all as its marginals.

Percentages and points on a scale of 0 to 100, as printed. The joint distribution behind them was not printed: the
matrix spreads every system's right answers over the slices so that all printed sums hold, and is random beyond them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import LinearConstraint, milp

from memdock_evaluator.statistics.arrays import Bools, Floats, Ints
from memdock_evaluator.statistics.matrix import Measure, ScoreMatrix
from memdock_evaluator.statistics.plan import AnalysisPlan, Family, MatchedAnswerer, paper_plan
from memdock_evaluator.statistics.slices import OVERALL, TIME_AXES, Slice, slices_of

FULL_CONTEXT, AGENT_RAG, ATEMPORAL = "full context", "agent/rag", "mem0g"
PROFILED, ANSWERER = "claude-sonnet-4.6", "gpt-4.1-mini"

TABLE_5 = {
    # Russian accuracy, its error, F1, its error; then English.
    "mem0g": (34.93, 1.21, 20.52, 0.81, 35.26, 1.22, 24.27, 0.83),
    "graphiti": (42.71, 1.26, 27.00, 0.91, 45.11, 1.27, 29.13, 0.90),
    "mem0": (53.21, 1.27, 30.10, 0.95, 54.12, 1.27, 35.05, 0.95),
    "cortex": (68.24, 1.19, 36.32, 0.99, 55.80, 1.26, 34.26, 0.94),
    "simple RAG": (68.89, 1.18, 36.17, 0.98, 65.46, 1.21, 39.00, 0.96),
    "memOS": (66.82, 1.20, 38.27, 1.00, 69.99, 1.17, 42.59, 0.96),
    "llama-4-maverick": (48.35, 1.27, 27.18, 0.97, 50.81, 1.27, 28.58, 0.95),
    "minimax-01": (56.71, 1.26, 31.99, 1.02, 57.42, 1.26, 31.68, 0.90),
    "gpt-4.1-mini": (60.08, 1.25, 27.26, 0.87, 62.93, 1.23, 33.68, 0.89),
    "gemini-3.1-flash-lite": (70.06, 1.17, 39.30, 1.06, 69.09, 1.18, 39.93, 0.97),
    "grok-4.1-fast": (76.22, 1.08, 34.40, 0.92, 79.59, 1.03, 23.34, 0.76),
    "claude-sonnet-4.6": (78.61, 1.04, 43.03, 1.02, 81.98, 0.98, 40.98, 1.01),
    "gpt-5.4": (83.60, 0.94, 40.43, 0.95, 83.99, 0.93, 40.75, 0.90),
}
FAMILIES = (
    Family(name=FULL_CONTEXT, systems=tuple(TABLE_5)[6:]),
    Family(name=AGENT_RAG, systems=tuple(TABLE_5)[:6]),
)
LANGUAGES = ("en", "ru")

SLICES: tuple[tuple[str, str, int, float, float, float, float, float, float], ...] = (
    # Axis and value, Table 24's n, claude-sonnet-4.6's accuracy in Russian and English (Table 24), full context's in
    # Russian and English, Agent/RAG's (Tables 11, 16, 19 and 21).
    ("overall", "all", 1543, 78.61, 81.98, 67.66, 69.40, 55.80, 54.29),
    ("scope", "single", 939, 83.49, 88.60, 76.65, 78.21, 63.92, 62.92),
    ("scope", "multi", 604, 71.03, 71.69, 53.69, 55.70, 43.18, 40.87),
    ("temporality", "atemporal", 1128, 79.79, 83.24, 69.39, 70.91, 60.55, 60.02),
    ("temporality", "temporal", 415, 75.42, 78.55, 62.96, 65.30, 58.41, 52.87),
    ("scope_temporality", "single+atemporal", 678, 84.66, 89.68, 78.61, 80.11, 69.00, 70.03),
    ("scope_temporality", "multi+atemporal", 450, 72.44, 73.56, 55.49, 57.05, 47.82, 44.93),
    ("scope_temporality", "single+temporal", 261, 80.46, 85.82, 71.54, 73.29, 67.20, 60.38),
    ("scope_temporality", "multi+temporal", 154, 66.88, 66.23, 48.42, 51.76, 43.51, 40.13),
    ("temporal_expression", "explicit", 102, 85.29, 84.31, 76.19, 76.89, 63.33, 60.20),
    ("temporal_expression", "implicit", 69, 57.97, 60.87, 46.17, 47.00, 44.35, 38.55),
    ("temporal_expression", "none", 244, 76.23, 81.15, 62.18, 65.63, 60.33, 53.85),
    ("supergroup", "extraction", 1079, 80.82, 82.58, 69.20, 69.85, 56.12, 53.82),
    ("supergroup", "reasoning", 310, 65.16, 76.77, 55.02, 60.51, 41.88, 41.67),
    ("supergroup", "abstention", 154, 90.26, 88.31, 82.28, 84.14, 81.60, 83.01),
    ("reasoning", "general_reasoning", 149, 60.40, 78.52, 55.99, 62.42, 39.49, 42.62),
    ("reasoning", "temporal_reasoning", 161, 69.57, 75.16, 54.13, 58.74, 44.10, 40.79),
)

GAPS = {
    # Full context minus Agent/RAG in Russian and English: Tables 11, 16 and 19.
    ("overall", "all"): (11.86, 15.11),
    ("scope", "single"): (12.73, 15.29),
    ("scope", "multi"): (10.51, 14.83),
    ("temporality", "atemporal"): (8.84, 10.89),
    ("temporality", "temporal"): (4.55, 12.43),
    ("scope_temporality", "single+atemporal"): (9.62, 10.08),
    ("scope_temporality", "multi+atemporal"): (7.67, 12.11),
    ("scope_temporality", "single+temporal"): (4.34, 12.91),
    ("scope_temporality", "multi+temporal"): (4.92, 11.63),
    ("temporal_expression", "explicit"): (12.86, 16.69),
    ("temporal_expression", "implicit"): (1.82, 8.45),
    ("temporal_expression", "none"): (1.85, 11.78),
    ("supergroup", "abstention"): (0.68, 1.13),
    ("supergroup", "reasoning"): (13.14, 18.84),
    ("supergroup", "extraction"): (13.09, 16.04),
}
SLICE_CONTRASTS = {
    # Agent/RAG in Russian and English, full context in Russian and English: Tables 12, 13, 15, 17, 20 and 21.
    ("scope", "single", "multi"): (20.73, 22.06, 22.96, 22.51),
    ("temporality", "atemporal", "temporal"): (2.14, 7.15, 6.43, 5.61),
    ("scope_temporality", "single+atemporal", "multi+atemporal"): (21.17, 25.10, 23.12, 23.06),
    ("scope_temporality", "single+temporal", "multi+temporal"): (23.70, 20.25, 23.12, 21.53),
    ("scope_temporality", "single+atemporal", "single+temporal"): (1.79, 9.65, 7.08, 6.82),
    ("scope_temporality", "multi+atemporal", "multi+temporal"): (4.32, 4.80, 7.07, 5.29),
    ("temporal_expression", "explicit", "implicit"): (18.99, 21.65, 30.02, 29.89),
    ("temporal_expression", "none", "explicit"): (-3.01, -6.34, -14.01, -11.26),
    ("temporal_expression", "none", "implicit"): (15.98, 15.30, 16.01, 18.63),
    ("supergroup", "extraction", "reasoning"): (14.24, 12.15, 14.18, 9.35),
    ("supergroup", "extraction", "abstention"): (-25.48, -29.19, -13.08, -14.28),
    ("supergroup", "reasoning", "abstention"): (-39.72, -41.34, -27.26, -23.63),
    ("reasoning", "general_reasoning", "temporal_reasoning"): (-4.61, 1.83, 1.87, 3.68),
}
LANGUAGE_CONTRASTS = {
    # English minus Russian of Agent/RAG and of full context: Table 18.
    ("overall", "all"): (-1.51, 1.74),
    ("scope", "single"): (-0.99, 1.57),
    ("scope", "multi"): (-2.32, 2.01),
    ("temporality", "atemporal"): (-0.53, 1.52),
    ("temporality", "temporal"): (-5.54, 2.34),
    ("temporal_expression", "implicit"): (-5.80, 0.83),
    ("temporal_expression", "none"): (-6.48, 3.45),
    ("supergroup", "extraction"): (-2.30, 0.65),
    ("supergroup", "reasoning"): (-0.22, 5.48),
    ("supergroup", "abstention"): (1.41, 1.86),
}
MATCHED = {
    # gpt-4.1-mini with the full context minus each, in Russian and English: Table 6.
    "cortex": (-8.17, 7.13),
    "mem0": (6.87, 8.81),
    "mem0g": (25.15, 27.67),
    "memOS": (-6.74, -7.06),
    "simple RAG": (-8.81, -2.53),
    "graphiti": (17.37, 17.82),
    AGENT_RAG: (4.28, 8.64),
}
GAP_BETWEEN_LANGUAGES = 3.25
"""F.1: the gap of the families in English minus that in Russian, over all questions."""
GAP_BETWEEN_SCOPES = (2.23, 0.46)
"""F.2: how much more full context loses from single to multi than Agent/RAG, in Russian and English."""

PROFILE = (
    # claude-sonnet-4.6, Table 25: axis, slices, language, difference, interval.
    ("scope", "single", "multi", "ru", 12.47, 8.21, 16.77),
    ("scope", "single", "multi", "en", 16.92, 12.82, 21.02),
    ("scope_temporality", "single+atemporal", "multi+atemporal", "ru", 12.22, 7.40, 17.02),
    ("scope_temporality", "single+atemporal", "multi+atemporal", "en", 16.12, 11.47, 20.71),
    ("scope_temporality", "single+temporal", "multi+temporal", "ru", 13.58, 4.93, 22.39),
    ("scope_temporality", "single+temporal", "multi+temporal", "en", 19.59, 11.27, 28.12),
    ("temporal_expression", "explicit", "implicit", "ru", 27.32, 13.68, 40.79),
    ("temporal_expression", "explicit", "implicit", "en", 23.44, 9.85, 36.62),
    ("temporal_expression", "none", "implicit", "ru", 18.26, 5.43, 31.30),
    ("temporal_expression", "none", "implicit", "en", 20.28, 7.67, 32.91),
    ("supergroup", "extraction", "reasoning", "ru", 15.65, 9.84, 21.62),
    ("supergroup", "extraction", "reasoning", "en", 5.80, 0.55, 11.06),
    ("supergroup", "extraction", "abstention", "ru", -9.44, -14.55, -3.97),
    ("supergroup", "reasoning", "abstention", "ru", -25.10, -32.20, -17.66),
    ("supergroup", "reasoning", "abstention", "en", -11.54, -18.33, -4.42),
)
PROFILE_LANGUAGES = {
    # claude-sonnet-4.6, English minus Russian: Table 25.
    ("overall", "all"): 3.37,
    ("scope", "single"): 5.11,
    ("temporality", "atemporal"): 3.46,
    ("scope_temporality", "single+atemporal"): 5.01,
    ("scope_temporality", "single+temporal"): 5.36,
    ("supergroup", "reasoning"): 11.61,
    ("reasoning", "general_reasoning"): 18.12,
}

KINDS = (
    # Questions by scope, temporality, temporal expression and group: Table 24's sizes, crossed by us.
    ("single", "atemporal", "", "extraction", 496),
    ("single", "atemporal", "", "general_reasoning", 89),
    ("single", "atemporal", "", "abstention", 93),
    ("multi", "atemporal", "", "extraction", 329),
    ("multi", "atemporal", "", "general_reasoning", 60),
    ("multi", "atemporal", "", "abstention", 61),
    ("single", "temporal", "explicit", "extraction", 39),
    ("single", "temporal", "explicit", "temporal_reasoning", 25),
    ("single", "temporal", "implicit", "extraction", 26),
    ("single", "temporal", "implicit", "temporal_reasoning", 17),
    ("single", "temporal", "none", "extraction", 94),
    ("single", "temporal", "none", "temporal_reasoning", 60),
    ("multi", "temporal", "explicit", "extraction", 23),
    ("multi", "temporal", "explicit", "temporal_reasoning", 15),
    ("multi", "temporal", "implicit", "extraction", 16),
    ("multi", "temporal", "implicit", "temporal_reasoning", 10),
    ("multi", "temporal", "none", "extraction", 56),
    ("multi", "temporal", "none", "temporal_reasoning", 34),
)
DIALOGUES, QUESTIONS = 85, 1543


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The right answers of some systems to the questions of some kinds are `right` together."""

    systems: tuple[str, ...]
    kinds: Bools
    right: int


@cache
def paper_matrix() -> ScoreMatrix:
    """13 systems x 2 languages x 1,543 questions with the printed figures; read only."""
    rng = np.random.default_rng(2607)
    kind_of = np.repeat(np.arange(len(KINDS)), [kind[-1] for kind in KINDS])
    rng.shuffle(kind_of)
    slices, members = slices_of([_axes(kind) for kind in kind_of.tolist()], [float(at) for at in rng.random(QUESTIONS)])
    hardness = rng.normal(size=QUESTIONS)
    correct = np.zeros((len(TABLE_5), len(LANGUAGES), QUESTIONS), dtype=np.int64)
    f1 = np.zeros(correct.shape)
    for where, language in enumerate(LANGUAGES):
        right = {system: row for family in FAMILIES for system, row in _right_answers(family, language)}
        for place, system in enumerate(TABLE_5):
            ease = rng.normal(size=QUESTIONS) - hardness
            for kind, wanted in enumerate(right[system]):
                of_kind = np.flatnonzero(kind_of == kind)
                correct[place, where, of_kind[np.argsort(ease[of_kind])[len(of_kind) - wanted :]]] = 1
            mean, error = TABLE_5[system][2 + 4 * (language == "en") :][:2]
            f1[place, where] = rng.permutation(_two_values(mean / 100, error / 100))
    return ScoreMatrix(
        systems=tuple(TABLE_5),
        languages=LANGUAGES,
        dialogues=tuple(f"{number:02}" for number in range(DIALOGUES)),
        dialogue_of=np.arange(QUESTIONS) * DIALOGUES // QUESTIONS,
        asked=np.ones((len(LANGUAGES), QUESTIONS), dtype=np.bool_),
        slices=slices,
        members=members,
        accuracy=Measure.right_or_wrong(correct, np.ones(correct.shape, dtype=np.bool_)),
        f1=Measure.shares(f1),
    )


def plan_of_the_paper(matrix: ScoreMatrix, *, profiles: Sequence[str] = (PROFILED,)) -> AnalysisPlan:
    """Its families and comparisons."""
    return paper_plan(
        matrix,
        FAMILIES,
        atemporal=[ATEMPORAL],
        matched=[MatchedAnswerer(baseline=ANSWERER, family=AGENT_RAG)],
        profiles=profiles,
    )


def _axes(kind: int) -> dict[str, str]:
    scope, temporality, expression, group, _ = KINDS[kind]
    axes = {"scope": scope, "temporality": temporality, "scope_temporality": f"{scope}+{temporality}", "group": group}
    return {**axes, "temporal_expression": expression} if expression else axes


def _right_answers(family: Family, language: str) -> Iterator[tuple[str, Ints]]:
    """Each system's right answers to each kind of question: whole numbers with the printed sums, else near to even."""
    sums = list(_sums(family, language))
    systems, sizes = family.systems, np.array([kind[-1] for kind in KINDS])
    cells = len(systems) * len(sizes)
    rows = np.array([np.outer(np.isin(systems, one.systems), one.kinds).ravel() for one in sums], dtype=float)
    share = np.array([TABLE_5[system][4 * (language == "en")] / 100 for system in systems])
    even = np.outer(share, sizes).ravel()
    # Unknown are whole numbers, and how far each is from even at least: the sum of the latter is to be least.
    apart = np.block([[np.eye(cells), np.eye(cells)], [np.eye(cells), -np.eye(cells)]])
    least, most = np.concatenate([even, np.full(cells, -np.inf)]), np.concatenate([np.full(cells, np.inf), even])
    right = np.array([one.right for one in sums], dtype=float)
    found = milp(
        np.repeat([0.0, 1.0], cells),
        integrality=np.repeat([1, 0], cells),
        bounds=(0, np.concatenate([np.tile(sizes, len(systems)), np.full(cells, np.inf)])),
        constraints=[
            LinearConstraint(np.hstack([rows, np.zeros_like(rows)]), right, right),
            LinearConstraint(apart, least, most),
        ],
        options={"mip_rel_gap": 0.2},
    )
    assert found.success, found.message
    return zip(systems, np.rint(found.x[:cells]).astype(np.int64).reshape(len(systems), -1), strict=True)


def _sums(family: Family, language: str) -> Iterator[Sum]:
    for system in family.systems:
        yield _sum((system,), OVERALL, TABLE_5[system][4 * (language == "en")])
    english = language == "en"
    for axis, value, _, *percents in SLICES:
        slice_ = Slice(axis=axis, value=value)
        without_times = {ATEMPORAL} if axis in TIME_AXES else set()
        of_family = percents[2 + english] if family.name == FULL_CONTEXT else percents[4 + english]
        yield _sum(tuple(one for one in family.systems if one not in without_times), slice_, of_family)
        if PROFILED in family.systems:
            yield _sum((PROFILED,), slice_, percents[english])


def _sum(systems: tuple[str, ...], slice_: Slice, percent: float) -> Sum:
    slices, members = slices_of([_axes(kind) for kind in range(len(KINDS))], [None] * len(KINDS))
    kinds = members[slices.index(slice_)]
    asked = len(systems) * sum(kind[-1] for kind, inside in zip(KINDS, kinds, strict=True) if inside)
    return Sum(systems=systems, kinds=kinds, right=round(percent / 100 * asked))


def _two_values(mean: float, error: float) -> Floats:
    """1,543 values of 0 or one other with this mean, and as nearly as that goes with this sd / sqrt(n)."""
    spread = error * QUESTIONS**0.5
    some = round(QUESTIONS / (1 + (spread / mean) ** 2))
    values = np.zeros(QUESTIONS)
    values[:some] = mean * QUESTIONS / some
    return values
