import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest

from memdock_evaluator.dataset import DatasetError
from memdock_evaluator.dataset.records import read_records

RECORDS = [{"id": 1, "text": 'ё "[{', "list": [1, 2.5, None]}, {"id": 2, "text": "два"}, {"id": 3}]
ARRAY = orjson.dumps(RECORDS)
LINES = b"".join(orjson.dumps(record) + b"\n" for record in RECORDS)
FORMS = {
    "array": ARRAY,
    "array, indented": orjson.dumps(RECORDS, option=orjson.OPT_INDENT_2),
    "lines": LINES,
    "lines, blank ones between": LINES.replace(b"\n", b"\r\n\r\n"),
    "values, indented": b"\n".join(orjson.dumps(record, option=orjson.OPT_INDENT_2) for record in RECORDS),
}


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrap", [lambda c: c, gzip.compress, lambda c: b"\xef\xbb\xbf" + c, lambda c: b"\n  " + c])
def test_every_form_gives_the_same_records(tmp_path: Path, form: str, wrap: Any) -> None:
    path = write(tmp_path / "misleading.name", wrap(FORMS[form]))

    assert list(read_records(path)) == RECORDS


@pytest.mark.parametrize(
    ("content", "record"),
    [
        (ARRAY[:-20], 2),
        (LINES[:-5], 3),
        (LINES.replace(b'{"id":2', b'{"id":2,,'), 2),
        (FORMS["values, indented"][:-3], 3),
        (gzip.compress(LINES)[:-10], 1),  # unpacked in blocks, of which this one holds every record
        (ARRAY.replace("два".encode(), b"\xff\xfe"), 2),
    ],
)
def test_damage_names_the_record(tmp_path: Path, content: bytes, record: int) -> None:
    path = write(tmp_path / "cut.json", content)

    with pytest.raises(DatasetError, match="cannot be read on") as caught:
        list(read_records(path))

    assert caught.value.record == record


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "the file is empty"), (b" \n", "the file is empty"), (b"id,text\n1,a\n", "neither JSON nor Parquet")],
)
def test_other_content_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    with pytest.raises(DatasetError, match=sentence):
        list(read_records(write(tmp_path / "data.jsonl", content)))


def test_missing_file_is_a_dataset_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"nowhere\.json: cannot be opened \(No such file or directory\)"):
        list(read_records(tmp_path / "nowhere.json"))


def test_parquet_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra memdock-evaluator[parquet] is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra memdock-evaluator[parquet] is not installed")
    records = [{"id": str(n), "sessions": [{"n": n, "said": ["a", "б"]}]} for n in range(9)]
    path = tmp_path / "rows.bin"
    parquet.write_table(pyarrow.Table.from_pylist(records), path)

    assert list(read_records(path)) == records

    write(path, path.read_bytes()[:-30])
    with pytest.raises(DatasetError, match="record 1: cannot be read on"):
        list(read_records(path))
