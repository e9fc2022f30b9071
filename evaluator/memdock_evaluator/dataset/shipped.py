"""The data set that ships with the evaluator: six dialogues of the project's own words, in Russian and in English."""

from pathlib import Path

from memdock_evaluator.dataset.errors import DatasetError

OWN = "own"
"""Stands for the data set in place of a path: all of its languages, or the one that is asked for."""

DATA = Path(__file__).parent.parent / "data"
LANGUAGES = ("ru", "en")

_FILES = {"rows": "rumba_rows_{}.jsonl", "dialogues": "data_locomo_format_{}.json"}


def own_dataset_path(language: str, shape: str = "rows") -> Path:
    """The file of a language ("ru" or "en") in a shape of RUMBA's ("rows" or "dialogues"), for `open_dataset`.

    Raises `DatasetError` for any other language, `ValueError` for any other shape.
    """
    if language not in LANGUAGES:
        raise DatasetError(f"the bundled data is in {' and '.join(LANGUAGES)}, not in {language!r}", path=OWN)
    if shape not in _FILES:
        raise ValueError(f"the bundled data has the shapes {' and '.join(_FILES)}, not {shape!r}")
    return DATA / _FILES[shape].format(language)
