"""What a run was asked to do, as one frozen object; `command.py` fills it from flags and environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from memdock_evaluator.answer.endpoint import ModelSettings, NamedJudge
from memdock_evaluator.cost.prices import Prices
from memdock_evaluator.results.manifest import Compared
from memdock_evaluator.results.plan import Sample, Track, VendorSettings
from memdock_evaluator.run.choice import Shard

_BATCH = re.compile(r"batch:([1-9]\d{0,4})")


class SettingsError(ValueError):
    """A run that cannot begin as asked; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """A data file, or `OWN`; `language` declares that of a file which does not say it itself."""

    path: str
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestUnit:
    """How many turns go into one AddTurns: "pair", "turn", "session", or "batch:N" for N turns across sessions."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in ("pair", "turn", "session") and not _BATCH.fullmatch(self.name):
            raise SettingsError(f"ingest unit {self.name!r}: give pair, turn, session, or batch:N such as batch:50")

    @property
    def batch_turns(self) -> int:
        """N of "batch:N", else 0."""
        match = _BATCH.fullmatch(self.name)
        return int(match[1]) if match else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """An earlier run's folder, and the stage up to which its records are taken over: "retrieve" or "answer".

    `only_unscored`, with "answer": verdicts that could be read are taken over, too.
    """

    run: str
    through: str
    only_unscored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """A run. Times are in seconds; `languages` and `dialogues` select (empty: all).

    `url` and `key` reach the gateway or a lone system; `systems` are names behind it, `baselines` names of
    `baselines.BASELINES`. `concurrency` bounds the dialogues in work, `parallel_questions` the questions of each that a
    memory system is asked. Each dialogue is stored `ingest_repeats` times, each question answered `repeats` times out
    of each, each answer judged `judge_repeats` times (0: as often as in the run that is reused). `judges`, where there
    are any, stand in place of `judge`. `profile`: "paper", or "" for none. `allowed_failed_turns` is the share of a
    dialogue's turns that a system may fail at and the dialogue still be done. `trial`: the models are asked a small
    question before anything is stored. `patience_s` is how long a call into a system is tried again while the
    infrastructure fails. `stop_after`: "ingest", "retrieve" or "answer", the last stage to be run; "": all are.
    `reuse`: what an earlier run did is taken over, and no system is asked. `compared`: what the report compares.
    `prices`: the table, `None` for the shipped one. `budget`: money, in its currency, that models may cost. `cache`:
    the file of a cache of the models' replies, "" for none. `docker`: the address of the engine that runs the systems'
    containers, "" for none. `again`: outcomes ("system_error", "refused") of a run that
    is there, whose questions are asked again. `command` is what the manifest quotes, without secrets.
    """

    data: tuple[DataSource, ...]
    out: str
    systems: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    url: str = ""
    key: str = field(default="", repr=False)
    languages: tuple[str, ...] = ()
    dialogues: tuple[str, ...] = ()
    format: str | None = None
    zone: str = "UTC"
    sample: Sample | None = None
    shard: Shard | None = None
    ks: tuple[int, ...] = (10,)
    """What is stored is asked for as many memories as each says."""
    context_tokens: int | None = None
    """Bounds what the answer model is given of a system's memories, by the evaluator's own estimate; `None`: all."""
    track: Track | None = None
    vendor_settings: Mapping[str, VendorSettings] = field(default_factory=dict)
    """By system, on the track of vendors."""
    ingest_unit: IngestUnit = field(default_factory=lambda: IngestUnit(name="pair"))
    repeats: int = 1
    ingest_repeats: int = 1
    judge_repeats: int = 1
    seed: int = 0
    reference_time: bool = False
    as_of: bool = False
    keep: bool = False
    allowed_failed_turns: float = 0.0
    answerer: ModelSettings = field(default_factory=ModelSettings)
    judge: ModelSettings = field(default_factory=ModelSettings)
    judges: tuple[NamedJudge, ...] = ()
    trial: bool = True
    concurrency: int = 4
    parallel_questions: int = 4
    flush_timeout_s: float = 3600.0
    call_timeout_s: float = 60.0
    patience_s: float = 60.0
    stop_after: str = ""
    profile: str = ""
    reuse: Reuse | None = None
    compared: Compared = field(default_factory=Compared)
    prices: Prices | None = None
    budget: float | None = None
    cache: str = ""
    docker: str = ""
    again: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
