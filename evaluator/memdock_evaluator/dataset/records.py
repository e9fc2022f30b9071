"""The records of a file one after another: JSON in several forms, plain or in gzip, or Parquet."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memdock_evaluator.dataset.errors import DatasetError
from memdock_evaluator.dataset.json_values import DAMAGED, JsonError, read_values

_GZIP, _PARQUET, _BOM = b"\x1f\x8b", b"PAR1", b"\xef\xbb\xbf"
_BUFFER_BYTES = 1 << 20
_PARQUET_ROWS = 4


def read_records(path: Path) -> Iterator[Any]:
    """Yield the file's records (an array's elements, lines, values, rows), one in memory at a time.

    What kind of file it is follows from its first bytes, never from its name. Raises `DatasetError` naming the record
    at which the file stops being what it began as.
    """
    number = 1
    try:
        with _open(path) as file:
            for record in _records(path, file):
                yield record
                number += 1
    except JsonError as error:
        raise DatasetError(str(error), path=path, record=number, remedy=error.remedy) from error
    except (OSError, EOFError, zlib.error) as error:
        problem = f"cannot be read on ({str(error).strip().splitlines()[0]})"
        raise DatasetError(problem, path=path, record=number, remedy=DAMAGED) from error


def _open(path: Path) -> io.BufferedReader:
    if path.exists() and not path.is_file():
        remedy = "write it to a file first, for it is read more than once"
        raise DatasetError("is no regular file", path=path, remedy=remedy)
    try:
        file: io.BufferedReader = io.BufferedReader(io.FileIO(path), _BUFFER_BYTES)
    except OSError as error:
        raise DatasetError(f"cannot be opened ({error.strerror})", path=path) from error
    if file.peek(2).startswith(_GZIP):
        file.close()
        return io.BufferedReader(gzip.GzipFile(path), _BUFFER_BYTES)
    return file


def _records(path: Path, file: io.BufferedReader) -> Iterator[Any]:
    if file.peek(3).startswith(_BOM):
        file.read(len(_BOM))
    while (ahead := file.peek(4)).isspace():
        file.read(len(ahead))
    start = ahead.lstrip()[:4]
    if start.startswith(_PARQUET):
        return _parquet_rows(path)
    if b"\0" in start or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        remedy = "if it is UTF-16, convert it: iconv -f UTF-16 -t UTF-8"
        raise DatasetError("not in UTF-8", path=path, remedy=remedy)
    if start.startswith((b"[", b"{")):
        return read_values(file, array=start.startswith(b"["))
    if not start:
        raise DatasetError("the file is empty", path=path)
    remedy = "give a JSON array, JSON lines or a Parquet file, plain or in gzip"
    raise DatasetError("neither JSON nor Parquet", path=path, remedy=remedy)


def _parquet_rows(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        remedy = "install it: pip install 'memdock-evaluator[parquet]'"
        raise DatasetError("Parquet needs the package pyarrow", path=path, remedy=remedy) from error
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                yield from batch.to_pylist()
    except ArrowException as error:
        raise OSError(str(error)) from error
