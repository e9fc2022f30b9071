"""Files that are replaced in one step."""

import os
import stat
from pathlib import Path

import pytest

from memdock.whole_file import write_whole


@pytest.mark.parametrize(("private", "others_read"), [(True, False), (False, True)])
def test_it_replaces_the_file_and_leaves_nothing_beside_it(tmp_path: Path, private: bool, others_read: bool) -> None:
    path = tmp_path / "file"
    path.write_text("a longer text than the next")
    before = os.umask(0o022)
    try:
        write_whole(path, "да", private=private)
    finally:
        os.umask(before)
    assert path.read_text("utf-8") == "да"
    assert bool(stat.S_IMODE(path.stat().st_mode) & stat.S_IROTH) is others_read
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", "new")
    assert path.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "folder"]
