"""What a case is: data with a stable id, and a check."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memdock.types import Feature


class Level(StrEnum):
    """Whom a case concerns."""

    MUST = "MUST"
    """Every server."""
    FEATURE = "FEATURE"
    """A server that declares the features of the case; any other one must refuse them."""
    GATEWAY = "GATEWAY"
    """A gateway."""


class Need(StrEnum):
    """What a case must be given beside an address; without it the case is unproven."""

    MODELS = "models"
    """The scripted model server stands behind the system."""
    LAUNCH = "launch"
    """The suite starts the system itself, so that it can be killed."""
    STORE = "store"
    """Commands that take the system's store away and bring it back."""
    COMPONENT = "component"
    """Commands that make a component fail to erase, and mend it."""
    OTHER_KEY = "other key"
    """A key of another tenant."""
    GATEWAY = "gateway"
    """A gateway's command, for the suite to start with systems of its own behind it."""


HOW = {
    Need.MODELS: "start the system with --launch and {model_url}, or point it at --model-listen",
    Need.LAUNCH: "give --launch, so that the suite can kill the system and start it again",
    Need.STORE: "give --store-down and --store-up",
    Need.COMPONENT: "give --component-break and --component-mend",
    Need.OTHER_KEY: "give --other-key, a key of another tenant",
    Need.GATEWAY: "give --gateway, the gateway's command",
}
"""What to do for a need, for people."""


class CheckFailedError(AssertionError):
    """The server does not keep a promise; the text says which."""


class UnprovenError(Exception):
    """Nothing was shown, neither way; the text says why."""


Check = Callable[[Any], Awaitable[None]]
"""Takes a `memdock.conformance.probe.Probe`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One promise and its check.

    `id`: of the list in the README, with a suffix for the part that needs more (`F1.restart`). `features`: those that
    must be declared. `alone`: nothing else may run meanwhile. `once`: on one face, for what concerns no face.
    """

    id: str
    level: Level
    title: str
    proves: str
    check: Check
    features: tuple[Feature, ...] = ()
    needs: tuple[Need, ...] = ()
    alone: bool = False
    once: bool = False

    @property
    def letter(self) -> str:
        """Its group."""
        return self.id[0]


REGISTERED: list[Case] = []
"""Every case, in the order in which the files of `cases` declare them."""


def case(
    case_id: str, title: str, *features: Feature, needs: tuple[Need, ...] = (), alone: bool = False, once: bool = False
) -> Callable[[Check], Check]:
    """Declares the function under it as a check; its docstring is what it proves."""
    level = Level.GATEWAY if case_id.startswith("G") else Level.FEATURE if features else Level.MUST

    def declare(check: Check) -> Check:
        proves = " ".join((check.__doc__ or "").split())
        assert proves, f"{case_id} does not say what it proves"
        assert all(known.id != case_id for known in REGISTERED), f"{case_id} is declared twice"
        REGISTERED.append(
            Case(
                id=case_id,
                level=level,
                title=title,
                proves=proves,
                check=check,
                features=features,
                needs=needs,
                alone=alone,
                once=once,
            )
        )
        return check

    return declare


def expect(holds: object, said: str) -> None:
    """Raises `CheckFailedError` with `said`, a sentence about the server, unless it holds."""
    if not holds:
        raise CheckFailedError(said)
