"""The cache of replies: what is kept, what is purged to the last byte, and what other files and processes may do."""

import sqlite3
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from memdock_evaluator.answer.completion import Completion, key_of
from memdock_evaluator.answer.reply_cache import CacheError, ReplyCache
from memdock_evaluator.cli import main

SECRET = "the cat is called Bublik and lives in Kazan"
REPLY = Completion(text=SECRET, input_tokens=7, output_tokens=3, estimated=True)


def stored(path: Path) -> bytes:
    """All bytes of the file and of what SQLite keeps beside it."""
    return b"".join(each.read_bytes() for each in sorted(path.parent.glob(f"{path.name}*")))


def test_a_reply_comes_back_as_it_was_and_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "replies.sqlite"
    cache = ReplyCache(str(path))
    assert cache.get(b"k", []) is None
    cache.put(b"k", REPLY, ["one"])
    cache.close()
    again = ReplyCache(f"file://{path}")
    assert again.get(b"k", []) == REPLY
    again.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("url", "body", "use"),
    [
        ("http://other/v1", {"model": "m", "seed": 1}, "answer 0"),
        ("http://host/v1", {"model": "n", "seed": 1}, "answer 0"),
        ("http://host/v1", {"model": "m", "seed": 2}, "answer 0"),
        ("http://host/v1", {"model": "m", "seed": 1, "temperature": 0.0}, "answer 0"),
        ("http://host/v1", {"model": "m", "seed": 1}, "answer 1"),
        ("http://host/v1", {"model": "m", "seed": 1}, "judge json 0 0"),
    ],
)
def test_each_part_of_a_key_makes_another(url: str, body: dict[str, object], use: str) -> None:
    mine = key_of("http://host/v1/", {"seed": 1, "model": "m"}, "answer 0")
    assert key_of("http://host/v1", {"model": "m", "seed": 1}, "answer 0") == mine, "the order of fields is no part"
    assert key_of(url, body, use) != mine


def test_what_derives_from_a_space_is_purged_to_the_last_byte_and_does_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = ReplyCache(str(path))
    cache.put(b"a", REPLY, ["mine", "shared"])
    cache.put(b"b", Completion(text="of another", input_tokens=1, output_tokens=1, estimated=False), ["other"])
    cache.put(b"c", REPLY, [])
    assert cache.get(b"c", ["mine"]) == REPLY, "asked for from a space, it derives from that one too"
    assert dict(cache.facts().spaces) == {"mine": 2, "other": 1, "shared": 1}
    assert SECRET.encode() in stored(path)
    assert cache.purge("mine") == 2
    assert SECRET.encode() not in stored(path)
    assert cache.get(b"a", []) is cache.get(b"c", []) is None
    cache.put(b"a", REPLY, ["other", "mine"])
    assert cache.get(b"a", []) is None
    assert SECRET.encode() not in stored(path)
    assert cache.get(b"b", ["mine"]) is not None
    assert dict(cache.facts().spaces) == {"other": 1}
    assert cache.purge("mine") == 0
    cache.close()


def test_other_files_and_places_are_refused_by_name(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("no database at all, just some words that go on for a while")
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    with pytest.raises(CacheError, match=r"notes\.txt cannot be used \(file is not a database\)"):
        ReplyCache(str(text))
    with pytest.raises(CacheError, match=r"other\.db is another database, no cache of replies: give another file"):
        ReplyCache(str(other))
    with pytest.raises(CacheError, match="cannot be opened"):
        ReplyCache(str(tmp_path))
    with pytest.raises(CacheError, match="it must be a file on this machine"):
        ReplyCache("s3://bucket/cache")
    with pytest.raises(CacheError, match="there is no cache"):
        ReplyCache(str(tmp_path / "none"), create=False)
    assert not (tmp_path / "none").exists()


def test_the_command_shows_and_purges(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = ReplyCache(str(path))
    cache.put(b"a", REPLY, ["eval-1-0-en"])
    cache.put(b"b", REPLY, [])
    cache.close()
    shown = CliRunner().invoke(main, ["cache", "show", str(path)])
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("2 replies, ")
    assert "eval-1-0-en: 1\n" in shown.output
    purged = CliRunner().invoke(main, ["cache", "purge", str(path), "--space", "eval-1-0-en", "--space", "x"])
    assert purged.output == "eval-1-0-en: 1 reply purged\nx: 0 replies purged\n"
    assert CliRunner().invoke(main, ["cache", "show", str(path)]).output.startswith("1 reply, ")
    missing = CliRunner().invoke(main, ["cache", "show", str(tmp_path / "none")])
    assert (missing.exit_code, missing.output) == (1, f"Error: there is no cache {tmp_path / 'none'}\n")
