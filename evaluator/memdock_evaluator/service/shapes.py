"""What the service answers with; the OpenAPI document is made of these."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from memdock_evaluator.ranges import MAX_MONEY

State = Literal["queued", "running", "cancelling", "completed", "incomplete", "failed", "cancelled"]
STATES: tuple[State, ...] = ("queued", "running", "cancelling", "completed", "incomplete", "failed", "cancelled")


class Count(BaseModel):
    """How much of one kind of work is done."""

    work: str = Field(description="turns accepted, turns processed, questions retrieved, questions answered, ...")
    done: int
    total: int


class Message(BaseModel):
    """A sentence of a run; numbers count from 1 in an attempt."""

    number: int
    at: datetime
    text: str


class Run(BaseModel):
    """A run. Of an attempt that has ended, `sentences` say why it ended as it did."""

    run_id: str
    state: State
    created: datetime
    ended: datetime | None = None
    attempt: int = Field(description="1, and one more for each resume.")
    plan: dict[str, str | list[str]]
    progress: list[Count] = []
    messages: list[Message] = Field(default=[], description="The last 200.")
    exit_code: int | None = Field(default=None, description="Of `memdock-eval run`; null until it has ended.")
    sentences: list[str] = []
    budget: float | None = Field(default=None, description="What this attempt was resumed with, else the plan's.")
    cost: float | None = Field(default=None, description="By list prices, as of the end of the newest attempt.")
    currency: str = ""


class Runs(BaseModel):
    """A page of runs, the newest first."""

    runs: list[Run]
    next_page_token: str = Field(description="Empty on the last page.")


class Calls(BaseModel):
    """Calls of a model that a run would make."""

    system: str
    purpose: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None = Field(description="null: the price table does not know the model.")


class Estimate(BaseModel):
    """What a run would ask and cost, from the sizes of its data alone."""

    questions: int
    dialogues: int
    calls: list[Calls]
    cost: float
    currency: str
    unpriced: list[str]
    sentences: list[str]


class Offer(BaseModel):
    """What a plan may name here."""

    data: list[str]
    systems: list[str] = Field(description="Empty too where the gateway does not answer.")
    baselines: list[str]
    answerers: list[str]
    judges: list[str]
    budget_ceiling: float | None
    most_questions: int = Field(
        description="Of a run: each for each system and k, as often as it is answered and judged."
    )
    currency: str
    fields: list[str] = Field(description="The fields of a plan.")
    may: list[str] = Field(description="The calls that the key allows: ReadRuns, StartRuns, EndRuns.")


class Resume(BaseModel):
    """How to go on with a run."""

    model_config = {"extra": "forbid"}

    budget: float | None = Field(
        default=None, gt=0, le=MAX_MONEY, allow_inf_nan=False, description="In place of the plan's."
    )


class Difference(BaseModel):
    """The second run minus the first in one measure, on the questions that both have."""

    language: str
    first_system: str
    second_system: str
    measure: str
    questions: int
    dialogues: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float | None


class Comparison(BaseModel):
    """Two runs. `plan`: what differs between their plans, a line each."""

    plan: list[str]
    differences: list[Difference]


class Verified(BaseModel):
    """Whether the files of a run agree; `problem` names the first difference."""

    agrees: bool
    problem: str = ""
    parts: int = 0
    rows: int = 0
    figures: int = 0


class Link(BaseModel):
    """An address of the report that a browser can open without a key until `expires`."""

    path: str
    expires: datetime


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str
    description: str


class Problem(BaseModel):
    """RFC 9457. `reason` is the word to act on; `request_id` finds the call in the logs."""

    type: str
    title: str
    status: int
    detail: str
    reason: str
    request_id: str
    errors: list[FieldProblem]
    retry_after_s: float | None = None
