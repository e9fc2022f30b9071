import gzip
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from memdock_evaluator.dataset import DatasetError, json_values
from memdock_evaluator.dataset.json_values import MOST_LEVELS
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


@pytest.mark.parametrize("joined", [b"[%s,\n%s]", b"%s\n%s\n", b"%s%s"], ids=["array", "lines", "values"])
@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7])
def test_the_buffer_may_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joined: bytes, chunk_bytes: int
) -> None:
    monkeypatch.setattr(json_values, "_CHUNK_BYTES", chunk_bytes)
    records = [{"a": '\\ " \\" ]} ё', "\\": ["\\\\", "", {}]}, {"b": '"', "c": [[1.5], -2, None]}]

    assert list(read_records(write(tmp_path / "data", joined % tuple(map(orjson.dumps, records))))) == records


DEEP = b"[" * 100_000
ROW = b'{"id":1}'


@pytest.mark.parametrize(
    ("content", "record"),
    [
        (DEEP, 1),
        (DEEP + b"]" * 100_000, 1),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, 1),
        (ROW + b'\n{"id":2,"more":' + DEEP[:10_000] + b"]" * 10_000 + b"}\n", 2),
        (b"[" + ROW + b',{"id":2,"more":' + DEEP[:MOST_LEVELS] + b"]" * MOST_LEVELS + b"}]", 2),
    ],
    ids=["open", "closed", "objects", "inside a line", "one too many"],
)
def test_brackets_inside_each_other_are_bounded(tmp_path: Path, content: bytes, record: int) -> None:
    with pytest.raises(DatasetError, match="has more than 64 brackets inside each other") as caught:
        list(read_records(write(tmp_path / "deep.json", content)))

    assert caught.value.record == record


def test_as_many_brackets_as_are_allowed(tmp_path: Path) -> None:
    inner = b"[" * (MOST_LEVELS - 1) + b"]" * (MOST_LEVELS - 1)
    content = b'[{"a":' + inner + b'},{"a":' + inner + b"}]"

    assert len(list(read_records(write(tmp_path / "deep.json", content)))) == 2


@pytest.mark.parametrize("form", [b"%s\n{}", b"[%s,{}]"], ids=["lines", "array"])
def test_a_record_that_is_larger_than_memory_should_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: bytes
) -> None:
    monkeypatch.setattr(json_values, "MOST_BYTES", 3 << 20)
    long = form % (b'{"text":"' + b"x" * (5 << 20) + b'"}')

    with pytest.raises(DatasetError, match="record 1: is longer than 3 MiB"):
        list(read_records(write(tmp_path / "long.json", long)))


@pytest.mark.parametrize("form", [b'{"id":1}\n{"text":"%s"}', b'[{"id":1},{"text":"%s"}]'], ids=["lines", "array"])
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"\ud83d\ude00\uDC00", "\U0001f600\ufffd"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud800 \ud800", "\\ud800 \ufffd"),
    ],
)
def test_half_of_a_surrogate_pair_is_a_lost_character(tmp_path: Path, form: bytes, written: bytes, read: str) -> None:
    assert list(read_records(write(tmp_path / "emoji.json", form % written)))[1] == {"text": read}


@pytest.mark.parametrize(
    ("content", "record", "sentence"),
    [
        (b"[%s,%s" % (ROW, ROW), 3, "the file ends inside it"),
        (b"[%s] %s" % (ROW, ROW), 2, "something else than an object stands here"),
        (b"[%s %s]" % (ROW, ROW), 2, "something else than an object stands here"),
        (b"[%s,]" % ROW, 2, "something else than an object stands here"),
        (b"[1, 2]", 1, "something else than an object stands here"),
        (b"%s\n5\n" % ROW, 2, "something else than an object stands here"),
        (b"%s}\n" % ROW, 2, "something else than an object stands here"),
        (b'%s\n{"id": "2}\n%s' % (ROW, ROW), 2, "a string does not end on its line"),
        (b'%s\n{"id": "2\0"}\n' % ROW, 2, "control character"),
        (b"%s\n%s" % (ROW, b"\0" * 9), 2, "something else than an object stands here"),
        (b'{"id": %s}' % (b"9" * 1_000_000), 1, "infinity"),
        (b'{"id": NaN}', 1, "expected a JSON value"),
    ],
)
def test_what_is_no_record_is_named(tmp_path: Path, content: bytes, record: int, sentence: str) -> None:
    with pytest.raises(DatasetError, match=sentence) as caught:
        list(read_records(write(tmp_path / "data.json", content)))

    assert caught.value.record == record


def test_no_records(tmp_path: Path) -> None:
    assert list(read_records(write(tmp_path / "data.json", b"[ \n ]\n"))) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_another_encoding_is_told(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(DatasetError, match="not in UTF-8; if it is UTF-16, convert it: iconv"):
        list(read_records(write(tmp_path / "data.json", ROW.decode().encode(encoding))))


def test_space_before_the_first_record_is_nothing(tmp_path: Path) -> None:
    assert list(read_records(write(tmp_path / "data.json", b" \n" * 2_000_000 + ROW))) == [{"id": 1}]


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(DatasetError, match="is no regular file; write it to a file first"):
            list(read_records(path))


@pytest.mark.parametrize(
    ("content", "record"),
    [
        (ARRAY[:-20], 2),
        (LINES[:-5], 3),
        (LINES.replace(b'{"id":2', b'{"id":2,,'), 2),
        (FORMS["values, indented"][:-3], 3),
        (gzip.compress(LINES, mtime=0)[:-10], 1),  # unpacked in blocks, of which this one holds every record
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
