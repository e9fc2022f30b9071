"""What is simulated, and what comes out."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Every system on every data set. The sizes are RUMBA's, by data set and language."""

    systems: int = 1
    data_sets: int = 1
    dialogues: int = 85
    requests: int = 245
    """AddTurns of a dialogue: one a pair."""
    questions: int = 18
    answer_tokens: tuple[int, int] = (4500, 60)
    """Of a call, in and out: ten memories of a pair each, and what a model that does not reason says."""
    judge_tokens: tuple[int, int] = (600, 60)

    @property
    def all_dialogues(self) -> int:
        """Of all systems and data sets."""
        return self.systems * self.data_sets * self.dialogues


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What it runs on. Times are in seconds of one core, or of one call; 0: no bound where a bound is meant.

    The defaults are a laptop of two cores with the reference memory, its bundled model, and a hosted model. Measured:
    `embed_s` by GigaMemory's 1.42 million Russian characters, embedded in 336 s on two cores; `store_s` and `search_s`
    by `bench_pgvector`, `evaluator_s` by `bench_run`. Assumed: the provider's, the uploads', the price of a core.
    """

    systems_at_once: int = 1
    """Jobs that run beside each other, each on a system of its own."""
    indexes: int = 1
    """Processes of each Job (`job --of`)."""
    dialogues_at_once: int = 4
    """Of an index (`run --concurrency`)."""
    parallel_questions: int = 4
    add_s: float = 0.002
    """A round trip of AddTurns."""
    embedder_cores: float = 1.5
    embed_s: float = 0.65
    """A pair, of RUMBA's 1,400 characters, on one core by the bundled model."""
    embed_query_s: float = 0.03
    database_cores: float = 0.5
    store_s: float = 0.0004
    """A pair with its vector and terms."""
    search_s: float = 0.0013
    connections: int = 100
    """`max_connections` of the database."""
    connections_per_system: int = 17
    """The pool of the reference memory, and the connection that holds its schema."""
    call_s: float = 1.5
    """A model's reply."""
    call_spread: float = 0.5
    """Standard deviation of the logarithm of its time; 0: all alike."""
    provider_calls: int = 64
    """At once, of all that ask the provider."""
    provider_calls_per_minute: float = 0
    evaluator_s: float = 0.003
    """Of an index's one core, a question with its part of ingest."""
    parts: int = 7
    """Uploads of a dialogue."""
    upload_s: float = 0.05
    uploads_per_second: float = 3500
    """What the results' store takes of writes below one address, as S3 does."""
    lease_s: float = 3.0
    """An index writes its lease as often."""
    core_hour: float = 0.05
    """Money."""

    @property
    def systems_that_fit(self) -> int:
        """Systems at once, as far as the database has connections for them; at least one."""
        most = self.connections // self.connections_per_system if self.connections else self.systems_at_once
        return max(1, min(self.systems_at_once, most))

    @property
    def lease_writes_per_second(self) -> float:
        """Of all indexes."""
        return self.systems_that_fit * self.indexes / self.lease_s

    @property
    def cores(self) -> float:
        """All that is paid for: an index has one, a gateway one for every four systems at once."""
        running = self.systems_that_fit
        return running * self.indexes + running / 4 + self.embedder_cores + self.database_cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """`used`: what part of each resource's time was taken, 0 to 1, of what was simulated; `limit` is the most used one.

    `dialogue_s`: how long one dialogue takes on its way. `models`, `machines`: money.
    """

    seconds: float
    systems_at_once: int
    calls: int
    models: float
    machines: float
    dialogue_s: float
    used: Mapping[str, float]
    simulated: int
    """Dialogues that were simulated one by one; the rest follows at their pace."""

    @property
    def limit(self) -> str:
        """Where the time goes: with all resources idle half of the time, the dialogues that are in work at once."""
        name = max(self.used, key=lambda each: self.used[each])
        return name if self.used[name] > 0.5 else "dialogues at once"
