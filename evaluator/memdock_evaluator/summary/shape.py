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
    `maybe_not_stored`: of those not retrieved, how many of a system that does not list its memories.
    """

    n: int
    by_text: int
    maybe_not_stored: int
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
    """Sums over all questions, means a question asked. `memories_given_mean`: memories before the answer model, which a
    context budget may make fewer than were retrieved. `estimated`: some are a quarter of the bytes of UTF-8,
    as the context always is.
    """

    context_mean: float
    memories_given_mean: float
    answer_input: int
    answer_output: int
    judge_input: int
    judge_output: int
    estimated: bool


class PurposeCost(TypedDict):
    """What a system's questions took of one purpose. `money`: of the models with a price, `None` where none has any;
    `unpriced` names the others, which come on top. Tokens are those that a model was asked for, without the
    replies that a cache gave; `estimated`: some were not counted by an endpoint. `a_question`: its share of each
    question asked, all languages and repeats counted, storing the dialogues included.
    """

    models: list[str]
    input_tokens: int
    output_tokens: int
    estimated: bool
    money: float | None
    a_question: float | None
    unpriced: list[str]


class SystemCost(TypedDict):
    """`n_questions`: how often a question was asked. `purposes`: "answer", "judge", "memory" (the system's own calls)
    as far as a model was asked.
    """

    n_questions: int
    purposes: dict[str, PurposeCost]
    total: PurposeCost


class Costs(TypedDict):
    """Money in `currency` by the list prices of `date`."""

    date: str
    currency: str
    unpriced: list[str]
    systems: dict[str, SystemCost]


class JudgePair(TypedDict):
    """Two judges (or people) on the `both` answers that both labelled, `same` of them alike; kappa of right and wrong,
    `None` where it is undefined.
    """

    first: str
    second: str
    both: int
    same: int
    kappa: float | None


class JudgeAgreement(TypedDict):
    """Of all judges of a language. `alpha`: Krippendorff's, nominal, over the labels; `n`: answers that two or more
    labelled.
    """

    n: int
    alpha: float | None
    pairs: list[JudgePair]


class Corrected(TypedDict):
    """A system's accuracy as people would have judged it, from `labelled` random answers; no interval where fewer than
    two dialogues have labels. `too_kind`, `too_strict`: the judge's errors among them. `cut`: the estimate lay beyond 0
    or 1, and `accuracy` is that end.
    """

    judged: float
    accuracy: float
    low: float | None
    high: float | None
    labelled: int
    too_kind: int
    too_strict: int
    cut: bool


class People(TypedDict):
    """What people's labels say. `kappa`: of the judge and what most of them say. `corrected`: system -> language."""

    raters: list[str]
    agreement: JudgeAgreement
    kappa: float | None
    corrected: dict[str, dict[str, Corrected]]


class AuditFigures(TypedDict):
    """A judge on `probes` answers whose verdict is known."""

    probes: int
    unscored: int
    same_label: int
    same_side: int
    too_strict: int
    too_kind: int


class Judges(TypedDict):
    """How far the verdicts can be trusted. `agreement` by language, of several judges; `audits`: judge -> language."""

    agreement: dict[str, JudgeAgreement]
    people: People | None
    audits: dict[str, dict[str, AuditFigures]]


class LanguageSummary(Figures):
    """One system in one language."""

    n_dialogues: int
    recall_at: dict[str, Recall]
    """By how many memories count: 1, 3, 5, 10 as far as they are below k, and k itself; empty of a baseline."""
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
    """One contestant. A baseline is no memory system and is not ranked with them.

    `system`: the memory system that is asked, the same of all its k. `k` and `context_tokens` (the budget, `None`:
    none) are those of `manifest.SystemFacts`, `None` of a baseline; `track` is "" where none was stated.
    """

    baseline: bool
    system: str
    k: int | None
    context_tokens: int | None
    track: str
    languages: dict[str, LanguageSummary]


class Caveat(TypedDict):
    """A sentence that whoever reads the figures must know. `about` is one of `caveats.ABOUT`."""

    about: str
    text: str


class Summary(TypedDict):
    """All of `summary.json`."""

    run_id: str
    k: int | None
    """That of all memory systems; `None` where they have several, or there is none."""
    offline: list[str]
    """Which of "answerer" and "judge" was a fixed rule and no model: accuracy and F1 then measure no quality."""
    ranked: dict[str, bool]
    """Language -> whether its systems may be put in order by accuracy."""
    caveats: list[Caveat]
    cost: Costs | None
    """`None`: the run kept no bill."""
    judges: Judges
    systems: dict[str, SystemSummary]
