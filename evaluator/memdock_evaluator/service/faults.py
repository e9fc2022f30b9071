"""The errors of the service: problem documents by the protocol's classes, with reasons of the service's own."""

from memdock.errors import (
    AlreadyExistsError,
    ConfigurationError,
    FieldError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)

REASONS = ("RUN_NOT_FOUND", "RUN_NOT_READY", "REQUEST_ID_CONFLICT", "RUNS_NOT_COMPARABLE", "RESULTS_UNREACHABLE")
"""Beside those of `memdock.errors.REASONS`."""


class PlanError(InvalidArgumentError):
    """A field of a plan, or of another request, that cannot be taken."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__("VALIDATION_FAILED", f"{field}: {what}", fields=[FieldError(field, what)])


def run_not_found(run_id: str) -> NotFoundError:
    """Also for the runs of other tenants: whether they exist is nobody else's affair."""
    return NotFoundError("RUN_NOT_FOUND", f"there is no run {run_id!r}")


def not_ready(what: str) -> AlreadyExistsError:
    """409: the run is not in a state that allows it."""
    return AlreadyExistsError("RUN_NOT_READY", what)


def spaces_kept() -> AlreadyExistsError:
    """409: what a run has stored at memory systems cannot be given back now."""
    said = "the run's spaces at the memory systems cannot be given back now; try again, or add ?leave_spaces=true"
    return not_ready(said)


def id_conflict() -> AlreadyExistsError:
    """409: the same request id came with another plan."""
    return AlreadyExistsError("REQUEST_ID_CONFLICT", "this Idempotency-Key stands for another plan; use a new one")


def not_comparable(why: str) -> AlreadyExistsError:
    """409: two runs of which no difference can be told."""
    return AlreadyExistsError("RUNS_NOT_COMPARABLE", why)


def queue_full(most: int) -> ResourceExhaustedError:
    """429."""
    said = f"{most} runs wait or run already, and more are not taken; wait for one, or cancel one"
    return ResourceExhaustedError("QUEUE_FULL", said, retry_after_s=60)


class ResultsUnreachableError(UnavailableError):
    """503: the results address does not answer, or not as it should."""

    def __init__(self) -> None:
        super().__init__(
            "RESULTS_UNREACHABLE", "the address of the results does not answer; try again later", retry_after_s=5
        )


class ServiceConfigError(ConfigurationError):
    """What `memdock-eval serve` was given cannot be used."""
