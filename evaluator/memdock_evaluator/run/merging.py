"""The shards of a run put together: the same rows as if it had been one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from memdock_evaluator.cost.bill import bill
from memdock_evaluator.cost.prices import Prices
from memdock_evaluator.results.finalise import (
    MANIFEST,
    holds_something_else,
    totals,
    with_stores,
    write_outcomes,
    write_timings,
)
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import DataCounts, Manifest, Plan, Price, differences
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.rows import Row
from memdock_evaluator.run.beginning import held, new_id
from memdock_evaluator.run.choice import Shard
from memdock_evaluator.summary.source import read_run


class MergeError(Exception):
    """Runs that are not the shards of one; the message names what is wrong with which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    folder: Folder
    manifest: Manifest
    rows: Sequence[Row]

    @property
    def shard(self) -> Shard:
        return Shard.read(self.manifest.plan.data.shard)


def merge(out: Folder, folders: Sequence[Folder], command: tuple[str, ...]) -> Manifest:
    """Copies the shards' parts into `out` and makes its files of them; gives the manifest, which is written last.

    Raises `MergeError`, `PartError`, `FolderError`, and what `read_run` raises.
    """
    if out.read(MANIFEST) is not None:
        raise MergeError(f"{out.address} holds a run already: give another OUT")
    if holds_something_else(out):
        raise MergeError(f"{out.address} holds something else than a run: give an empty folder or a new one")
    pieces = sorted(map(_piece, folders), key=lambda piece: piece.shard.number)
    _check(pieces)
    with held(out):
        expected = with_stores(pieces[0].manifest.plan, Counter(Unit.of(row) for piece in pieces for row in piece.rows))
        for piece in pieces:
            _copy(piece, out)
        write_outcomes(out, expected)
        write_timings(out, expected)
        manifest = replace(_manifest(pieces, command), totals=totals(out, expected))
        if (cost := manifest.cost) is not None:
            prices = Prices(date=cost.date, currency=cost.currency, models=_prices(pieces))
            manifest = replace(manifest, cost=bill(manifest.plan, out, expected, prices))
        out.write(MANIFEST, manifest.to_json())
    return manifest


def _piece(folder: Folder) -> _Piece:
    run = read_run(folder)
    if not run.manifest.plan.data.shard:
        raise MergeError(f"{folder.address} is no shard: it was run without --shard")
    if run.manifest.finished is None:
        raise MergeError(f"{folder.address} (shard {run.manifest.plan.data.shard}) is not complete: finish it first")
    return _Piece(folder=folder, manifest=run.manifest, rows=run.rows)


def _check(pieces: Sequence[_Piece]) -> None:
    """All shards of one plan, each once."""
    first = pieces[0]
    for piece in pieces:
        if found := differences(_common(first.manifest.plan), _common(piece.manifest.plan)):
            listed = "\n  ".join(found)
            raise MergeError(
                f"{first.folder.address} and {piece.folder.address} are of different plans. They differ in\n  {listed}"
            )
        if piece.shard.of != first.shard.of:
            raise MergeError(
                f"{first.folder.address} is shard {first.shard}, {piece.folder.address} is shard {piece.shard}"
            )
    places: dict[int, _Piece] = {}
    for piece in pieces:
        if (twin := places.setdefault(piece.shard.number, piece)) is not piece:
            raise MergeError(f"shard {piece.shard} is given twice: {twin.folder.address}, {piece.folder.address}")
    if missing := [number for number in range(1, first.shard.of + 1) if number not in places]:
        raise MergeError(f"of {first.shard.of} shards these are missing: {', '.join(map(str, missing))}")


def _common(plan: Plan) -> Plan:
    """Without what a shard has for itself."""
    return replace(plan, data=replace(plan.data, shard="", languages={}, oddities={}))


def _copy(piece: _Piece, out: Folder) -> None:
    for unit in sorted(with_stores(piece.manifest.plan, Counter(map(Unit.of, piece.rows)))):
        Parts(piece.folder, unit).check()
        for name in piece.folder.names(unit.folder):
            out.write(f"{unit.folder}/{name}", piece.folder.read(f"{unit.folder}/{name}") or b"")


def _manifest(pieces: Sequence[_Piece], command: tuple[str, ...]) -> Manifest:
    manifests = [piece.manifest for piece in pieces]
    data = [manifest.plan.data for manifest in manifests]
    oddities = Counter[str]()
    for each in data:
        oddities.update(each.oddities)
    whole = replace(
        data[0], shard="", languages=_added([each.languages for each in data]), oddities=dict(sorted(oddities.items()))
    )
    return replace(
        manifests[0],
        run_id=new_id(),
        started=min(manifest.started for manifest in manifests),
        finished=max(manifest.finished for manifest in manifests if manifest.finished),
        command=command,
        merged=tuple(manifest.run_id for manifest in manifests),
        again=tuple(demand for manifest in manifests for demand in manifest.again),
        plan=replace(manifests[0].plan, data=whole),
    )


def _prices(pieces: Sequence[_Piece]) -> dict[str, Price]:
    """Those that the shards used."""
    return {
        name: price for piece in pieces if piece.manifest.cost for name, price in piece.manifest.cost.prices.items()
    }


def _added(languages: Sequence[Mapping[str, DataCounts]]) -> dict[str, DataCounts]:
    sums: dict[str, Counter[str]] = {}
    for counts in languages:
        for language, found in counts.items():
            sums.setdefault(language, Counter()).update(asdict(found))
    return {language: DataCounts(**found) for language, found in sorted(sums.items())}
