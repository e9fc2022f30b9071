"""What a run has written, as it is served: its report, rows, figures and tables; and what is computed from them."""

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from typing import IO

from memdock.errors import AlreadyExistsError
from memdock_evaluator.results.finalise import MANIFEST, OUTCOMES, TIMINGS
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import Manifest, ManifestError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.service import shapes
from memdock_evaluator.service.book import Place, results_of
from memdock_evaluator.service.faults import ResultsUnreachableError, not_comparable, not_ready
from memdock_evaluator.service.marks import Marks

KINDS = {
    MANIFEST: "application/json",
    "summary.json": "application/json",
    "statistics.json": "application/json",
    OUTCOMES: "application/x-ndjson",
    TIMINGS: "application/x-ndjson",
}
"""The files of a run that are served as they are."""
TABLE_KINDS = {"md": "text/markdown", "csv": "text/csv", "json": "application/json", "tex": "application/x-tex"}
TABLE = re.compile(rf"[a-z0-9_-]{{1,64}}\.({'|'.join(TABLE_KINDS)})")
REPORTS = {"en": "report.html", "ru": "report.ru.html"}

_SCRIPT = re.compile(rb"<script\b[^>]*>(.*?)</script>", re.DOTALL)
_PIECE_BYTES = 1 << 18


class Files:
    """The files of runs at the results address."""

    def __init__(self, marks: Marks, address: str) -> None:
        """`marks` reads at the same `address`."""
        self._marks, self._address = marks, address

    def read(self, place: Place, name: str) -> bytes:
        """A file of a run, whole; raises 409 where the run has none (yet)."""
        content = self._marks.read(_path(place, name))
        if content is None:
            raise _no_file(place, name)
        return content

    def manifest(self, place: Place) -> Manifest | None:
        """What a run was begun with; `None` where it never was."""
        content = self._marks.read(_path(place, MANIFEST))
        try:
            return None if content is None else Manifest.from_json(content, place=MANIFEST)
        except ManifestError as error:
            raise not_ready(str(error)) from error

    def stream(self, place: Place, name: str) -> Iterator[bytes]:
        """A file of a run in pieces, however large; raises 409 where the run has none (yet)."""
        file = self._marks.open(_path(place, name))
        if file is None:
            raise _no_file(place, name)
        return _pieces(file)

    def tables(self, place: Place) -> list[str]:
        """The names of the tables, each in its four forms."""
        return [name for name in self._marks.names(_path(place, "tables")) if TABLE.fullmatch(name)]

    def compare(self, first: Place, second: Place, systems: tuple[str, str] | None) -> shapes.Comparison:
        """What `memdock-eval compare` tells."""
        # numpy takes a while to load, and a server that only starts runs has no need of it.
        from memdock_evaluator.review.compare import CompareError, compare
        from memdock_evaluator.summary import RunFilesError

        try:
            found = compare(self._folder(first), self._folder(second), systems or ())
        except (CompareError, RunFilesError, ManifestError) as error:
            raise not_comparable(self._plain(str(error))) from error
        except FolderError as error:
            raise ResultsUnreachableError from error
        return shapes.Comparison(
            plan=list(found.plan), differences=[shapes.Difference(**asdict(each)) for each in found.differences]
        )

    def verify(self, place: Place) -> shapes.Verified:
        """What `memdock-eval verify` tells."""
        from memdock_evaluator.review.verify import VerifyError, verify
        from memdock_evaluator.summary import RunFilesError

        try:
            found = verify(self._folder(place))
        except (VerifyError, RunFilesError, ManifestError, PartError) as error:
            return shapes.Verified(agrees=False, problem=self._plain(str(error)))
        except FolderError as error:
            raise ResultsUnreachableError from error
        return shapes.Verified(agrees=True, parts=found.parts, rows=found.rows, figures=found.figures)

    def _folder(self, place: Place) -> Folder:
        return Folder(f"{self._address}/{results_of(place.tenant, place.run_id)}")

    def _plain(self, said: str) -> str:
        """A sentence without the server's own address."""
        return said.replace(f"{self._address}/", "")


def _path(place: Place, name: str) -> str:
    return f"{results_of(place.tenant, place.run_id)}/{name}"


def _no_file(place: Place, name: str) -> AlreadyExistsError:
    return not_ready(f"the run has no {name}" + ("" if place.ended else " yet: it has not ended"))


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def report_policy(page: bytes) -> str:
    """The Content-Security-Policy of a report: its own scripts by their hashes, nothing from anywhere, no origin.

    `sandbox` gives it an origin of its own, so that nothing in it could reach the key that the page at `/` keeps.
    """
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in dict.fromkeys(_SCRIPT.findall(page))
    )
    return (
        f"default-src 'none'; script-src {hashes or chr(39) + 'none' + chr(39)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "sandbox allow-scripts allow-popups allow-downloads"
    )
