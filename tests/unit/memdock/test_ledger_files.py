"""The ledger's files: one owner, nothing left of what was erased, nothing lost, errors that say what to do."""

import asyncio
import random
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from memdock.errors import UnavailableError
from memdock.ledger import ErasureKind, Settled
from memdock.sqlite_ledger import SqliteLedger
from memdock.sqlite_ledger.files import open_writer
from memdock.sqlite_ledger.writer import Writer
from memdock.system import Outcome
from memdock.types import Selection, Turn, TurnState

MARK = "секрет-9f3c"


def turn(turn_id: str, text: str) -> Turn:
    return Turn(turn_id=turn_id, session_id="s1", role="user", text=text, name=f"{MARK}-name", metadata={"k": MARK})


def occurrences(folder: Path) -> int:
    return sum(path.read_bytes().count(MARK.encode()) for path in folder.iterdir())


async def test_a_second_owner_is_refused_by_name(tmp_path: Path) -> None:
    first, second = SqliteLedger(tmp_path / "ledger.db"), SqliteLedger(tmp_path / "ledger.db")
    await first.open()
    with pytest.raises(UnavailableError, match=r"in use by process \d+; stop that one, or name another file"):
        await second.open()
    await first.close()
    await second.open()
    await second.close()


async def test_a_missing_folder_and_a_foreign_layout_are_told(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="does not exist"):
        await SqliteLedger(tmp_path / "nowhere" / "ledger.db").open()
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    ledger = SqliteLedger(tmp_path / "other.db")
    for _ in range(2):  # the refusal gives the owner's lock back
        with pytest.raises(UnavailableError, match="has layout 99"):
            await ledger.open()


async def test_whatever_part_of_a_file_is_damaged_is_told_as_that(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = SqliteLedger(path)
    await ledger.open()
    for start in range(0, 400, 100):
        await ledger.admit("one", [turn(f"t{n}", "word " * 20) for n in range(start, start + 100)])
    await ledger.close()
    whole = path.read_bytes()
    told = 0
    for page in range(0, len(whole), 4096):
        path.write_bytes(whole[:page] + b"\xa5" * 4096 + whole[page + 4096 :])
        try:
            await ledger.open()
            await ledger.busy_spaces()
            await ledger.turns("one", after=0, limit=1000)
            await ledger.admit("one", [turn("another", "x")])
        except UnavailableError:
            told += 1
        finally:
            await ledger.close()
    assert told > len(whole) // 4096 // 2


async def test_a_file_that_is_no_ledger_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"not a database, but of some length" * 100)
    before = path.read_bytes()
    with pytest.raises(UnavailableError, match=r"cannot be opened .file is not a database.; name another file"):
        await SqliteLedger(path).open()
    assert path.read_bytes() == before


async def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    await ledger.admit("space", [turn("t", MARK)])
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    await ledger.close()


async def test_a_closed_ledger_says_so(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.close()
    with pytest.raises(UnavailableError, match="is not open"):
        await ledger.counts("space")


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_of_forgotten_turns_is_left_in_any_file(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    secret_ids = []
    for index in range(120):
        secret = chance.random() < 0.3
        size = chance.choice((1, 40, 900, 6000, 30_000))
        text = MARK + "x" * size if secret else "y" * size
        one = turn(f"t{index}", text) if secret else Turn(turn_id=f"t{index}", session_id="s", role="user", text=text)
        secret_ids += [one.turn_id] if secret else []
        await ledger.admit("space", [one])
        if chance.random() < 0.5:
            held = await ledger.pending("space", limit=chance.randint(1, 5))
            outcome = Outcome(state=TurnState.SEARCHABLE)
            await ledger.settle("space", [Settled(seq=row.seq, outcome=outcome) for row in held])
    assert occurrences(tmp_path) > 0
    begun = await ledger.begin_erasure(
        "space", ErasureKind.FORGET, Selection(turn_ids=tuple(secret_ids)), request_id="r", fingerprint=b"f"
    )
    assert begun.intent is not None
    taken = await ledger.erase(begun.intent)
    assert (taken.residue.items, taken.residue.verified) == (0, True)
    await ledger.finish_erasure(begun.intent, answer=b"")
    assert occurrences(tmp_path) == 0
    assert len(await ledger.turns("space", after=0, limit=500)) == 120
    await ledger.close()


async def test_content_goes_when_a_turn_is_settled(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    await ledger.admit("space", [turn("t", MARK)])
    (held,) = await ledger.pending("space", limit=1)
    await ledger.settle("space", [Settled(seq=held.seq, outcome=Outcome(state=TurnState.SEARCHABLE))])
    await ledger.close()  # the write-ahead log is emptied into the file
    assert occurrences(tmp_path) == 0


async def test_a_job_that_raises_takes_back_only_itself(tmp_path: Path) -> None:
    writer = Writer(open_writer(tmp_path / "ledger.db"))
    held = threading.Event()

    def insert(name: str, *, fail: bool = False) -> object:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO keys VALUES (?, x'00')", (name,))
            if fail:
                raise ValueError(name)

        return writer.run(work)

    waits = asyncio.ensure_future(writer.run_alone(lambda connection: held.wait()))
    await asyncio.sleep(0.05)  # the thread is busy: what follows becomes one group
    jobs = [asyncio.ensure_future(insert(f"k{index}", fail=index == 1)) for index in range(3)]  # type: ignore[call-overload]
    await asyncio.sleep(0)
    held.set()
    await waits
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), ValueError, type(None)]
    names = await writer.run(lambda connection: [name for (name,) in connection.execute("SELECT name FROM keys")])
    assert names == ["digest", "k0", "k2"]
    await writer.close()


async def test_a_full_disk_is_told_without_loss(tmp_path: Path) -> None:
    writer = Writer(open_writer(tmp_path / "ledger.db"))
    (pages,) = await writer.run(lambda connection: connection.execute("PRAGMA page_count").fetchone())
    await writer.run_alone(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone())

    def grow(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO keys VALUES ('big', zeroblob(100000))")

    with pytest.raises(UnavailableError) as problem:
        await writer.run(grow)
    assert problem.value.reason == "STORE_UNREACHABLE"
    await writer.run(lambda connection: connection.execute("INSERT INTO keys VALUES ('small', x'00')"))
    await writer.close()


async def test_the_loop_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    writer = Writer(open_writer(tmp_path / "ledger.db"))
    slow = asyncio.ensure_future(writer.run(lambda connection: time.sleep(0.3)))
    started = time.perf_counter()
    await asyncio.sleep(0.01)
    assert time.perf_counter() - started < 0.2
    assert not slow.done()
    await slow
    await writer.close()
