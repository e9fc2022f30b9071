"""The parts of a run: one file a system x dialogue x stage x attempt, written once and never changed.

A later attempt holds what the earlier ones lack: questions whose infrastructure had failed, or that a kill took.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson
from pydantic import ValidationError

from memdock_evaluator.ending import ended
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.names import safe_name
from memdock_evaluator.results.records import Kind, RecordT
from memdock_evaluator.results.rows import Row
from memdock_evaluator.results.wrong_field import wrong_field

PARTS = "parts"
"""The folder of all parts, in that of a run."""


class PartError(Exception):
    """A part that is not as it was written; the message names the file and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unit:
    """What is done in one go: a system and a dialogue in a language, stored for the first time or anew (`ingest` > 0).

    Units sort as rows do, but for those of one dialogue, whose rows stand between each other.
    """

    system: str
    language: str
    dialogue_id: str
    ingest: int = 0

    @classmethod
    def of(cls, row: Row) -> "Unit":
        """That which a row comes from."""
        return cls(system=row.system, language=row.language, dialogue_id=row.dialogue_id, ingest=row.ingest)

    @property
    def folder(self) -> str:
        """Where its parts are, inside the run's folder."""
        again = (f"again-{self.ingest}",) if self.ingest else ()
        return "/".join((PARTS, *map(safe_name, (self.system, self.language, self.dialogue_id)), *again))


class Parts:
    """The parts of one unit."""

    def __init__(self, folder: Folder, unit: Unit) -> None:
        self.unit = unit
        self._folder = folder

    def read(self, kind: Kind[RecordT]) -> list[RecordT]:
        """All records of a stage, those of an earlier attempt first; raises `PartError`."""
        return [record for attempt in self.attempts(kind) for record in attempt]

    def attempts(self, kind: Kind[RecordT]) -> list[list[RecordT]]:
        """The records of each attempt at a stage, in their order; raises `PartError`."""
        return [self._read(kind, self._name(kind, number)) for number in self._attempts(kind)]

    def has(self, kind: Kind[RecordT]) -> bool:
        """Whether any attempt of a stage is there."""
        return bool(self._attempts(kind))

    def newest(self, kind: Kind[RecordT]) -> list[RecordT]:
        """The records of a stage's last attempt; raises `PartError`."""
        attempts = self._attempts(kind)
        return self._read(kind, self._name(kind, attempts[-1])) if attempts else []

    def write(self, kind: Kind[RecordT], records: Iterable[RecordT]) -> None:
        """Writes the next attempt of a stage; no records, no part."""
        lines = [kind.to_line(record) for record in records]
        if not lines:
            return
        body = b"\n".join(lines) + b"\n"
        attempt = max(self._attempts(kind), default=0) + 1  # one past the last, also where an earlier one was deleted
        name = self._name(kind, attempt)
        head = {"part": name, "records": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
        self._folder.write(name, orjson.dumps(head) + b"\n" + body, once=True)

    async def save(self, kind: Kind[RecordT], records: Sequence[RecordT]) -> None:
        """As `write`, while the event loop goes on: a disk takes its time, an object store more.

        It comes to its end even where the caller is cancelled, however often.
        """
        writing = asyncio.create_task(asyncio.to_thread(self.write, kind, records))
        try:
            await ended([writing])
        finally:
            writing.result()  # where it failed, that is what also whoever cancelled must know

    def check(self) -> int:
        """Reads every part file's checksum and number of records; how many there are. Raises `PartError`."""
        names = [name for name in self._folder.names(self.unit.folder) if name.endswith(".jsonl")]
        for name in names:
            self._lines(f"{self.unit.folder}/{name}")
        return len(names)

    def _attempts(self, kind: Kind[RecordT]) -> list[int]:
        """The numbers of a stage's attempts, ascending."""
        name = re.compile(rf"{kind.name}-(\d{{3,}})\.jsonl")
        return sorted(int(match[1]) for each in self._folder.names(self.unit.folder) if (match := name.fullmatch(each)))

    def _name(self, kind: Kind[RecordT], attempt: int) -> str:
        return f"{self.unit.folder}/{kind.name}-{attempt:03}.jsonl"

    def _read(self, kind: Kind[RecordT], name: str) -> list[RecordT]:
        try:
            return [kind.from_line(line) for line in self._lines(name)]
        except ValidationError as error:
            wrong = wrong_field(error, whole="a line")
            raise PartError(
                f"{self._folder.address}/{name}: {wrong}; the part is whole, so another version of memdock-eval wrote "
                "it: use the one that manifest.json names"
            ) from error

    def _lines(self, name: str) -> list[bytes]:
        """The records of a file that is as it was written."""
        head, _, body = (self._folder.read(name) or b"").partition(b"\n")
        lines = body.splitlines()
        try:
            wanted = orjson.loads(head)
            whole = hashlib.sha256(body).hexdigest() == wanted["sha256"] and len(lines) == wanted["records"]
            part = wanted.get("part", name)
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise self._damaged(name) from error
        if not whole:
            raise self._damaged(name)
        if part != name:
            raise PartError(f"{self._folder.address}/{name} was written as {part}: put it back to its place")
        return lines

    def _damaged(self, name: str) -> PartError:
        return PartError(f"{self._folder.address}/{name} is damaged: delete it, and the run does that part again")
