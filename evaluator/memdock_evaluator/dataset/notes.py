"""Where a reader writes down what was odd."""

from dataclasses import dataclass, field

from memdock_evaluator.dataset.types import Oddity


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The oddities of one dialogue so far; `where` is the place that further ones are noted at."""

    where: str
    oddities: list[Oddity] = field(default_factory=list)

    def at(self, place: str) -> "Notes":
        """The same notes, written from a place inside this one."""
        return Notes(where=f"{self.where}, {place}", oddities=self.oddities)

    def add(self, kind: str, detail: str) -> None:
        """Note an oddity here; see `Oddity` for the words."""
        self.oddities.append(Oddity(kind=kind, where=self.where, detail=detail))
