"""The records of a file one after another: a JSON array, JSON lines, single JSON values, Parquet; JSON also in gzip."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ijson
import orjson

from memdock_evaluator.dataset.errors import DatasetError

_GZIP, _PARQUET, _BOM = b"\x1f\x8b", b"PAR1", b"\xef\xbb\xbf"
_BUFFER_BYTES = 1 << 20
_PARQUET_ROWS = 4
_DAMAGE = (ijson.JSONError, orjson.JSONDecodeError, UnicodeDecodeError, OSError, EOFError, zlib.error)


def read_records(path: Path) -> Iterator[Any]:
    """Yield the file's records (the array's elements, the lines, the values, the rows), one in memory at a time.

    What kind of file it is follows from its first bytes, never from its name. Raises `DatasetError` naming the record
    at which the file stops being what it began as.
    """
    number = 1
    try:
        with _open(path) as file:
            for record in _records(path, file):
                yield record
                number += 1
    except _DAMAGE as error:
        reason = str(error).strip().split("\n")[0]
        raise DatasetError(
            f"cannot be read on ({reason})",
            path=path,
            record=number,
            remedy="the file is damaged or incomplete: fetch it again",
        ) from error


def _open(path: Path) -> io.BufferedReader:
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
    start = file.peek(64).lstrip()
    if start.startswith(_PARQUET):
        return _parquet_rows(path)
    if start.startswith(b"["):
        return _elements(file)
    if start.startswith(b"{"):
        return _lines_or_values(file)
    if start:
        remedy = "give a JSON array, JSON lines or a Parquet file, plain or in gzip"
        raise DatasetError("neither JSON nor Parquet", path=path, remedy=remedy)
    raise DatasetError("the file is empty", path=path)


def _elements(file: io.BufferedReader) -> Iterator[Any]:
    return iter(ijson.items(file, "item", use_float=True, buf_size=_BUFFER_BYTES))


def _lines_or_values(file: io.BufferedReader) -> Iterator[Any]:
    """Lines are five times as quick to read as values that span lines, so the first line decides which it is."""
    start = file.tell()
    try:
        yield orjson.loads(file.readline())
    except orjson.JSONDecodeError:
        file.seek(start)
        yield from ijson.items(file, "", multiple_values=True, use_float=True, buf_size=_BUFFER_BYTES)
    for line in file:
        if not line.isspace():
            yield orjson.loads(line)


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
