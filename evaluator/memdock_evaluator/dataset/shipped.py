"""The data set that ships with the evaluator: six dialogues of the project's own words, in Russian and in English."""

from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
LANGUAGES = ("ru", "en")

_FILES = {"rows": "rumba_rows_{}.jsonl", "dialogues": "data_locomo_format_{}.json"}


def own_dataset_path(language: str, shape: str = "rows") -> Path:
    """The file of a language ("ru" or "en") in a shape of RUMBA's ("rows" or "dialogues"), for `open_dataset`.

    Raises `ValueError` for any other language or shape.
    """
    if language not in LANGUAGES:
        raise ValueError(f"the data set is in {' and '.join(LANGUAGES)}, not in {language!r}")
    if shape not in _FILES:
        raise ValueError(f"the data set has the shapes {' and '.join(_FILES)}, not {shape!r}")
    return DATA / _FILES[shape].format(language)
