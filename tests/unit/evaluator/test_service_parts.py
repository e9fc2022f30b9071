"""The small parts of the service: marks as places, event ids, links, a report's policy, words of a run's process."""

import asyncio
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from memdock.errors import UnauthenticatedError
from memdock_evaluator.cli import main
from memdock_evaluator.service.book import Book, Place
from memdock_evaluator.service.carrier import Told
from memdock_evaluator.service.documents import Asked, Beat, End, Said, new_run_id, new_token, now
from memdock_evaluator.service.faults import ResultsUnreachableError
from memdock_evaluator.service.files import report_policy
from memdock_evaluator.service.links import Links
from memdock_evaluator.service.marks import Marks
from memdock_evaluator.service.offer import Offer
from memdock_evaluator.service.replica import MAX_TAKEN, Pace, Replica
from memdock_evaluator.service.watch import Seen


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(Marks(str(tmp_path)))


def add(book: Book, tenant: str = "t") -> Place:
    run_id = book.add(Asked(run_id=new_run_id(), tenant=tenant, key_id="k", created=now(), plan={"data": ("own",)}))
    place = book.place(tenant, run_id)
    assert place is not None
    return place


def test_a_run_is_read_from_the_names_of_its_marks(book: Book) -> None:
    place = add(book)
    assert book.take(place)
    assert not book.take(place)
    book.beat(place, 1, Beat(count=3, done={"answers judged": (1, 2)}, said=(Said(number=1, at=now(), text="hm"),)))
    book.cancel(place)
    found = book.place("t", place.run_id)
    assert found == Place(tenant="t", run_id=place.run_id, attempt=1, taken=1, has_beat=True, cancelled=True)
    assert book.newest_beat(found).done == {"answers judged": (1, 2)}
    assert book.end(found, End(state="cancelled", at=now(), token=new_token()))
    assert not book.end(found, End(state="completed", at=now(), token=new_token()))
    ended = book.place("t", place.run_id)
    assert ended is not None
    ending = book.ending(ended)
    assert ending is not None
    assert ending.state == "cancelled"
    assert book.ask("t", place.run_id, 2, 5.0)
    assert not book.ask("t", place.run_id, 2, 6.0)
    assert book.place("t", place.run_id) == Place(tenant="t", run_id=place.run_id, attempt=2)
    assert book.places("other") == []
    assert book.place("t", "../t") is None


def test_who_took_over_is_seen_and_its_beats_are_the_ones_that_count(book: Book) -> None:
    place = add(book)
    book.take(place)
    book.beat(place, 1, Beat(count=7))
    assert not book.was_taken_over(place, 1)
    second = book.place("t", place.run_id)
    assert second is not None
    book.take(second)
    assert book.was_taken_over(place, 1)
    third = book.place("t", place.run_id)
    assert third is not None
    assert book.own_beat(third) is None
    assert book.newest_beat(third).count == 7


async def test_a_run_that_ends_every_replica_is_told_as_such(book: Book, tmp_path: Path) -> None:
    place = add(book)
    for number in range(MAX_TAKEN):
        assert book.take(Place(tenant="t", run_id=place.run_id, attempt=1, taken=number))
    replica = Replica(
        book=book,
        offer=Offer(),
        address=str(tmp_path),
        places=1,
        pace=Pace(look_s=0.01, beat_s=0.01, lease_s=0.05),
        ended=lambda end: None,
        took_over=lambda: None,
    )
    working = asyncio.create_task(replica.work())
    async with asyncio.timeout(20):
        while not (found := book.place("t", place.run_id)) or not found.ended:  # noqa: ASYNC110 - files tell nobody
            await asyncio.sleep(0.01)
    working.cancel()
    ending = book.ending(found)
    assert ending is not None
    assert (ending.state, str(MAX_TAKEN) in ending.sentences[0]) == ("incomplete", True)


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("2.17", Seen(attempt=2, number=17)),
        ("3.end", Seen(attempt=3, ended=True)),
        ("", Seen()),
        ("1", Seen()),
        ("-1.2", Seen()),
        ("1.x", Seen()),
        ("١.٢", Seen()),
        ("9" * 5000 + ".1", Seen()),
        ("1." + "9" * 5000, Seen()),
    ],
)
def test_the_last_event_is_read_whatever_a_client_says(written: str, seen: Seen) -> None:
    assert Seen.read(written) == seen


def test_a_link_is_of_one_report_and_of_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = new_run_id()
    with pytest.raises(ResultsUnreachableError):
        Links(Marks(str(tmp_path / "none"))).sign("t", run_id)
    one, other = Links(Marks(str(tmp_path))), Links(Marks(str(tmp_path)))
    one.prepare()
    other.prepare()
    ticket, expires = one.sign("ann", run_id)
    assert other.tenant(ticket, run_id) == "ann"
    for odd in (
        "",
        ":",
        "ann",
        ticket.replace("ann", "bob"),
        ticket + "0",
        ticket.replace(str(expires), "9" * 11),
        "é:1:é",
    ):
        with pytest.raises(UnauthenticatedError, match="CREDENTIAL_INVALID"):
            other.tenant(odd, run_id)
    with pytest.raises(UnauthenticatedError, match="CREDENTIAL_INVALID"):
        other.tenant(ticket, new_run_id())
    monkeypatch.setattr("memdock_evaluator.service.links.time.time", lambda: expires + 1.0)
    with pytest.raises(UnauthenticatedError, match="CREDENTIAL_EXPIRED"):
        other.tenant(ticket, run_id)


def test_a_report_may_run_its_own_scripts_and_no_other() -> None:
    page = b"<script type='x'>data</script>\n<SCRIPT>no</SCRIPT><script>\nlet a = 1\n</script><p onclick='evil()'>"
    policy = report_policy(page)
    for script in (b"data", b"\nlet a = 1\n"):
        assert f"'sha256-{b64encode(sha256(script).digest()).decode()}'" in policy
    assert "script-src 'none'" in report_policy(b"<p>")


def test_what_a_process_tells_becomes_progress_sentences_and_an_end() -> None:
    told = Told(plain=lambda said: said.replace("/secret/", ""))
    for line in (
        b'{"done": {"answers judged": [1, 2]}}\n',
        b'{"said": "waits in /secret/x"}\n',
        b"Usage: memdock-eval run [OPTIONS]\n",
        b"Try 'memdock-eval run --help' for help.\n",
        b"\n",
        b"Error: --k 5000 in /secret/y is more\n",
        b"\xff\xfe\n",
        b"[1]\n",
    ):
        told.take(line)
    assert told.done == {"answers judged": (1, 2)}
    assert [(each.number, each.text) for each in told.said] == [(1, "waits in x")]
    assert told.sentences()[0] == "--k 5000 in y is more"


def test_a_package_that_is_missing_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("memdock_evaluator.service.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    done = CliRunner().invoke(main, ["serve", "--help"])
    assert (done.exit_code, "pip install 'memdock-evaluator[service]'" in done.output) == (1, True)
