"""`labels.json`: what people said of answers that they labelled."""

from collections.abc import Mapping
from dataclasses import dataclass

LABELS = "labels.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """An answer that people labelled. `right`: what most of them say; of two halves the first sheet's decides."""

    item: str
    system: str
    language: str
    dialogue_id: str
    question_id: str
    repeat: int
    labels: Mapping[str, int]
    right: bool
    tied: bool
    judge: int

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """That of its row."""
        return self.system, self.language, self.dialogue_id, self.question_id, self.repeat
