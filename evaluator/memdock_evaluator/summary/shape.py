"""What `summary.json` holds, as typed dictionaries: shares and scores lie between 0 and 1, `None` is "not measured"."""

from typing import TypedDict


class IntervalFigures(TypedDict):
    """`intervals.Interval` as JSON."""

    low: float
    high: float
    level: float
    standard_error: float
    n_clusters: int


class Bounds(TypedDict):
    """Where accuracy lies if every question without a score were wrong, and if every one were right."""

    low: float
    high: float


class Figures(TypedDict):
    """The scores of some questions: of one system in one language, or of one slice of them.

    A question asked several times counts once, by the mean of its repeats. An error of the system's counts as wrong,
    as F1 0 and, where the system says that it names its sources, as nothing retrieved. Retrieval leaves out
    abstentions, questions without known evidence, and DeleteInfo unless there is nothing else. `recall_at_k`, `mrr` and
    `ndcg` go by session.
    """

    n_questions: int
    n_scored: int
    n_evidence: int
    """Questions that the retrieval scores by session should be over."""
    n_retrieval: int
    """Questions that they are over; fewer where the infrastructure failed or memories name no sources."""
    coverage: float
    """Share of the questions asked (repeats counted) that have a score."""
    judge_accuracy: float | None
    judge_accuracy_se: float | None
    """The paper's: sqrt(p (1 - p) / n)."""
    judge_accuracy_interval: IntervalFigures | None
    """By dialogue; see `intervals.accuracy_interval`."""
    judge_accuracy_bounds: Bounds
    f1: float | None
    f1_se: float | None
    """The paper's: sd / sqrt(n)."""
    recall_at_k: float | None
    recall_turns_at_k: float | None
    mrr: float | None
    mrr_turns: float | None
    ndcg: float | None
    ndcg_turns: float | None


class DeleteInfo(TypedDict):
    """Retrieval of what the user asked to forget: high is no merit, so it stays out of the other figures."""

    n_questions: int
    recall_at_k: float | None
    recall_turns_at_k: float | None


class FailedTurns(TypedDict):
    """What turns that the system failed to store touch: dialogues, and questions whose evidence is among them."""

    n_dialogues: int
    n_questions: int


class Failures(TypedDict):
    """Where wrong answers of a memory system went wrong (`attribution.Failure`), repeats counted; empty of a baseline.

    `where` leaves out what never happened. `by_text` of them are told by the text of memories that name no sources.
    """

    n: int
    by_text: int
    where: dict[str, int]
    slices: dict[str, dict[str, dict[str, int]]]
    """Axis -> value -> where."""


class Recall(TypedDict):
    """Recall among the first memories alone, over the same questions as the other retrieval figures."""

    sessions: float | None
    turns: float | None


class Latency(TypedDict):
    """Wall time of one stage in milliseconds, as the run met it: with the wait for other calls of the run."""

    n: int
    p50: float
    p95: float


class Tokens(TypedDict):
    """Sums over all questions, `context_mean` a question asked. `estimated`: some are a quarter of the bytes of UTF-8,
    as the context always is.
    """

    context_mean: float
    answer_input: int
    answer_output: int
    judge_input: int
    judge_output: int
    estimated: bool


class LanguageSummary(Figures):
    """One system in one language."""

    n_dialogues: int
    recall_at: dict[str, Recall]
    """By how many memories count: 1, 3, 5, 10 as far as they are below k, and k itself."""
    delete_info: DeleteInfo
    failed_turns: FailedTurns
    failures: Failures
    outcomes: dict[str, int]
    """Questions asked by what became of them, zeros too."""
    unscored: int
    """Answers whose verdict could not be read."""
    abstained: int
    """Answers that say that there is no such information."""
    latency_ms: dict[str, Latency]
    """By stage ("retrieve"), and by stage and step inside the system ("retrieve/embed")."""
    tokens: Tokens
    slices: dict[str, dict[str, Figures]]
    """Axis -> value -> figures."""


class SystemSummary(TypedDict):
    """One system. A baseline is no memory system and is not ranked with them."""

    baseline: bool
    languages: dict[str, LanguageSummary]


class Caveat(TypedDict):
    """A sentence that whoever reads the figures must know. `about` is one of `caveats.ABOUT`."""

    about: str
    text: str


class Summary(TypedDict):
    """All of `summary.json`."""

    run_id: str
    k: int
    offline: list[str]
    """Which of "answerer" and "judge" was a fixed rule and no model: accuracy and F1 then measure no quality."""
    ranked: dict[str, bool]
    """Language -> whether its systems may be put in order by accuracy."""
    caveats: list[Caveat]
    systems: dict[str, SystemSummary]
