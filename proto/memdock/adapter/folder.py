"""An adapter's data folder: one process at a time, and always the same system and embedder.

Each fact about the folder is a file of one line in it: `system`, and `embedder` where vectors are kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from memdock.errors import MemdockError
from memdock.log import log_fault
from memdock.sqlite_ledger.files import Owner
from memdock.whole_file import write_whole

_MOST_WORDS = 300


@contextmanager
def data_folder(folder: Path, facts: Mapping[str, str]) -> Iterator[None]:
    """Holds the folder, made where it is missing, from here on.

    Raises `ValueError` where another value of a fact is written in it: what is stored would be taken for what it is
    not. `UnavailableError` where another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    unwritten = [name for name, value in facts.items() if not _is_written(folder / name, value)]
    owner = Owner(folder / "folder", f"The folder {folder}", "give another --data")
    try:
        for name in unwritten:
            write_whole(folder / name, f"{facts[name]}\n")
        yield
    finally:
        owner.release()


@contextmanager
def opening(folder: Path, secrets: Sequence[str]) -> Iterator[None]:
    """Whatever a framework raises as its stores are opened is one sentence, an `OSError`; `secrets` are not in it."""
    try:
        yield
    except (MemdockError, OSError, click.ClickException):
        raise
    except Exception as fault:
        log_fault("not_opened", fault)
        kind, words = type(fault).__name__, " ".join(str(fault).split())[:_MOST_WORDS]
        why = kind if not words or any(secret in words for secret in secrets if secret) else f"{kind}: {words}"
        raise OSError(
            f"the store of {folder} cannot be opened ({why}): see that its database is there and its files are whole, "
            "or give another --data"
        ) from fault


def _is_written(file: Path, value: str) -> bool:
    """Whether the fact is there. Raises `ValueError` where there is another."""
    try:
        found = file.read_text("utf-8").strip()
    except FileNotFoundError:
        return False
    except UnicodeDecodeError:
        raise ValueError(f"{file} is no text: it must hold {value!r}, or give another --data") from None
    if found != value:
        raise ValueError(
            f"the folder {file.parent} has the data of the {file.name} {found!r}, and this is {value!r}: give that, or "
            f"another --data; where it is the same {file.name} by another name, write it into {file}"
        )
    return True
