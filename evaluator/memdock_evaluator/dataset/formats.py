"""The formats that can be read, and which of them a file is in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memdock_evaluator.dataset.errors import DatasetError
from memdock_evaluator.dataset.gigamemory import read_gigamemory
from memdock_evaluator.dataset.locomo import read_locomo
from memdock_evaluator.dataset.longmemeval import read_longmemeval
from memdock_evaluator.dataset.mend import mend
from memdock_evaluator.dataset.own import read_own
from memdock_evaluator.dataset.rumba_dialogues import read_dialogues
from memdock_evaluator.dataset.rumba_rows import read_rows
from memdock_evaluator.dataset.shipped import LANGUAGES, OWN, own_dataset_path
from memdock_evaluator.dataset.source import Source
from memdock_evaluator.dataset.types import Dialogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format by name; a record is in it when it has all of `keys`."""

    name: str
    keys: frozenset[str]
    read: Callable[[Source], Iterator[Dialogue]]


FORMATS = tuple(
    Format(name=name, keys=frozenset(keys.split()), read=read)
    for name, keys, read in (
        ("rumba-rows", "conversation_idx question answer conversation", read_rows),
        ("rumba-dialogues", "dialogue_id conversation qa", read_dialogues),
        ("locomo", "conversation qa", read_locomo),
        ("longmemeval", "question_id question haystack_sessions", read_longmemeval),
        ("gigamemory", "question ans sessions", read_gigamemory),
        ("own", "dialogue_id sessions questions", read_own),
    )
)
"""In the order in which they are tried."""


def open_dataset(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word that a caller would look for
    language: str | None = None,
    zone: str = "UTC",
) -> Iterator[Dialogue]:
    """Read a data file dialogue by dialogue, one in memory at a time (see `Dialogue` for what is promised of each).

    The string "own" in place of a path is the data set that ships with the evaluator, in `language` or in all it has.
    `format` is a name of `FORMATS`; `None`: found from the first record. `language` overrides what the file or its
    questions' script says. `zone` is the IANA zone of times that have no offset. JSON arrays, JSON lines and single
    values are read, each also in gzip, and Parquet.

    Raises `DatasetError` at once for a file that cannot be opened or recognised or an unknown `format` or `zone`, and
    while reading for a record that is broken beyond repair; what could be mended is in each dialogue's `oddities`.
    """
    if path == OWN:
        languages = LANGUAGES if language is None else (language,)
        files = [(own_dataset_path(code), code) for code in languages]
        return chain.from_iterable(open_dataset(file, format=format, language=code, zone=zone) for file, code in files)
    source = Source(path=Path(path), zone=_zone(zone, path), language=language)
    chosen = _named(format, source) if format else detect(source)
    return mend(chosen.read(source))


def detect(source: Source) -> Format:
    """The first of `FORMATS` that the file's first record has the keys of, or a `DatasetError` that lists them."""
    record = next(source.records())
    is_object = isinstance(record.value, dict)
    keys = set(record.value) if is_object else set()
    for known in FORMATS:
        if known.keys <= keys:
            return known
    found = ", ".join(key[:40] for key in islice(sorted(keys), 12)) or (
        "none" if is_object else "none, for it is no object"
    )
    tried = "; ".join(f"{known.name} ({', '.join(sorted(known.keys))})" for known in FORMATS)
    problem = f"no known format. Its keys: {found}. Tried: {tried}"
    raise source.broken(record, "", problem, "see `memdock-eval dataset schema` for a format of your own data")


def _named(name: str, source: Source) -> Format:
    for known in FORMATS:
        if known.name == name:
            return known
    names = ", ".join(known.name for known in FORMATS)
    raise DatasetError(f"there is no format {name!r}", path=source.path, remedy=f"name one of {names}")


def _zone(name: str, path: str | Path) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        remedy = "give an IANA name such as Europe/Moscow"
        raise DatasetError(f"there is no time zone {name!r}", path=path, remedy=remedy) from error
