"""Data sets of questions about long conversations: read, checked and exported, one dialogue in memory at a time."""

from memdock_evaluator.dataset.errors import DatasetError
from memdock_evaluator.dataset.formats import open_dataset
from memdock_evaluator.dataset.shipped import own_dataset_path
from memdock_evaluator.dataset.types import Dialogue, DialogueTurn, Oddity, Question, Session

__all__ = [
    "DatasetError",
    "Dialogue",
    "DialogueTurn",
    "Oddity",
    "Question",
    "Session",
    "open_dataset",
    "own_dataset_path",
]
