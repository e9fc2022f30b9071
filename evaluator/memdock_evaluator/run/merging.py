"""Runs put together: the shards of one, and runs of other systems over the same data beside each other."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import PurePath

from memdock_evaluator.cost.bill import bill
from memdock_evaluator.cost.prices import Prices
from memdock_evaluator.isolation.watch import united
from memdock_evaluator.results.finalise import (
    MANIFEST,
    holds_something_else,
    totals,
    with_stores,
    write_outcomes,
    write_timings,
)
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Compared, Manifest, NamedFamily, Price
from memdock_evaluator.results.parts import Unit
from memdock_evaluator.results.plan import DataCounts, Plan, SystemFacts, differences
from memdock_evaluator.run.beginning import held, new_id
from memdock_evaluator.run.paper_profile import differences_from_paper
from memdock_evaluator.run.pieces import MergeError, Piece, opened
from memdock_evaluator.run.tracks import differences_within_tracks

Named = tuple[str, Folder]
"""A run, and the name that its memory system gets; "": its own."""


def merge(out: Folder, runs: Sequence[Named], command: tuple[str, ...]) -> Manifest:
    """Copies the runs' parts into `out` and makes its files of them; gives the manifest, which is written last.

    Runs of the same systems are the shards of one; those of other systems stand beside it. Raises `MergeError`,
    `PartError`, `FolderError`, and what `read_run` raises.
    """
    _refuse_a_run(out)
    if holds_something_else(out):
        raise MergeError(f"{out.address} holds something else than a run: give an empty folder or a new one")
    pieces = [opened(folder, name) for name, folder in runs]
    whole = [_whole(group) for group in _by_systems(pieces)]
    manifest = replace(_joined(whole, pieces), command=command)
    with held(out):
        _refuse_a_run(out)  # another merge may have ended meanwhile
        rows = Counter[Unit]()
        for piece in pieces:
            piece.copy(out)
            rows.update(piece.rows)
        expected = with_stores(manifest.plan, rows)
        write_outcomes(out, expected)
        write_timings(out, expected)
        manifest = replace(manifest, totals=totals(out, expected))
        if (cost := manifest.cost) is not None:
            prices = Prices(date=cost.date, currency=cost.currency, models=_prices(pieces))
            manifest = replace(manifest, cost=bill(manifest.plan, out, expected, prices))
        # Also where this process was out of reach for so long that another one has merged: of the two one is the run.
        out.write(MANIFEST, manifest.to_json(), once=True)
    return manifest


def _refuse_a_run(out: Folder) -> None:
    if out.read(MANIFEST) is not None:
        raise MergeError(f"{out.address} holds a run already: give another OUT")


def _by_systems(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The shards of each run together, in their order."""
    groups: dict[frozenset[str], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.systems, []).append(piece)
    return [sorted(group, key=lambda piece: piece.shard.number if piece.shard else 0) for group in groups.values()]


def _whole(pieces: Sequence[Piece]) -> Manifest:
    """The manifest of the run that pieces of the same systems are, as if it had not been run in shards."""
    shards = [(piece, shard) for piece in pieces if (shard := piece.shard) is not None]
    if not shards and len(pieces) == 1:
        return pieces[0].manifest
    if not shards:
        raise _twice(pieces[0].systems, pieces[0].address, pieces[1].address)
    if unsharded := [piece for piece in pieces if piece.shard is None]:
        raise MergeError(f"{unsharded[0].address} is no shard: it was run without --shard")
    first, shard = shards[0]
    for piece, other in shards:
        _refuse_differences(first, piece, _of_any_shard(first.manifest.plan), _of_any_shard(piece.manifest.plan))
        if other.of != shard.of:
            raise MergeError(f"{first.address} is shard {shard}, {piece.address} is shard {other}")
    places: dict[int, Piece] = {}
    for piece, other in shards:
        if (twin := places.setdefault(other.number, piece)) is not piece:
            raise MergeError(f"shard {other} is given twice: {twin.address}, {piece.address}")
    if missing := [number for number in range(1, shard.of + 1) if number not in places]:
        raise MergeError(f"of {shard.of} shards these are missing: {', '.join(map(str, missing))}")
    data = [piece.manifest.plan.data for piece in pieces]
    oddities = Counter[str]()
    for each in data:
        oddities.update(each.oddities)
    merged = replace(
        data[0], shard="", languages=_added([each.languages for each in data]), oddities=dict(sorted(oddities.items()))
    )
    return replace(first.manifest, plan=replace(first.manifest.plan, data=merged))


def _joined(whole: Sequence[Manifest], pieces: Sequence[Piece]) -> Manifest:
    """One run of whole runs over other systems each."""
    of_group = {piece.systems: piece for piece in pieces}
    firsts = [of_group[frozenset(each.name for each in manifest.plan.systems)] for manifest in whole]
    for one, other in combinations(firsts, 2):
        if common := one.systems & other.systems:
            raise _twice(common, one.address, other.address)
    for manifest, piece in zip(whole, firsts, strict=True):
        _refuse_differences(firsts[0], piece, _but_for_systems(whole[0].plan), _but_for_systems(manifest.plan))
    systems = [each for manifest in whole for each in manifest.plan.systems]
    if found := differences_within_tracks(systems):
        listed = "\n  ".join(found)
        raise MergeError(f"the systems of one track must be alike. They differ in\n  {listed}")
    _refuse_prices(pieces)
    plan = replace(whole[0].plan, systems=tuple(sorted(systems, key=_is_baseline)))
    manifests = [piece.manifest for piece in pieces]
    return replace(
        whole[0],
        run_id=new_id(),
        started=min(manifest.started for manifest in manifests),
        finished=max(manifest.finished for manifest in manifests if manifest.finished),
        merged=tuple(manifest.run_id for manifest in manifests),
        again=tuple(demand for manifest in manifests for demand in manifest.again),
        isolation=united([manifest.isolation for manifest in manifests]),
        compared=_compared([manifest.compared for manifest in whole]),
        plan=replace(plan, differs=differences_from_paper(plan)) if plan.profile and len(whole) > 1 else plan,
    )


def _refuse_differences(first: Piece, piece: Piece, one: Plan, other: Plan) -> None:
    if found := differences(one, other):
        listed = "\n  ".join(found)
        raise MergeError(f"{first.address} and {piece.address} are of different plans. They differ in\n  {listed}")


def _of_any_shard(plan: Plan) -> Plan:
    """Without what a shard has for itself."""
    return replace(plan, data=replace(plan.data, shard="", languages={}, oddities={}))


def _but_for_systems(plan: Plan) -> Plan:
    """What runs over other systems must have in common; the same file may lie elsewhere on each machine."""
    files = tuple(replace(file, path=PurePath(file.path).name) for file in plan.data.files)
    return replace(plan, systems=(), differs=(), data=replace(plan.data, files=files))


def _twice(systems: Iterable[str], one: str, other: str) -> MergeError:
    return MergeError(
        f"{', '.join(sorted(systems))} stands in {one} and in {other}: leave one out, or give its memory system "
        f"another name, as NAME={other}"
    )


def _is_baseline(facts: SystemFacts) -> bool:
    return facts.baseline


def _compared(found: Sequence[Compared]) -> Compared:
    """What each run was to compare; families of one name are one."""
    families: dict[str, tuple[str, ...]] = {}
    for each in found:
        for family in each.families:
            families[family.name] = tuple(dict.fromkeys((*families.get(family.name, ()), *family.systems)))
    return Compared(
        families=tuple(NamedFamily(name=name, systems=systems) for name, systems in families.items()),
        atemporal=tuple(dict.fromkeys(system for each in found for system in each.atemporal)),
        case_studies=tuple(dict.fromkeys(system for each in found for system in each.case_studies)),
    )


def _refuse_prices(pieces: Sequence[Piece]) -> None:
    """Money of two tables has no sum, nor has that of two tables of one date that price a model differently."""
    tables = {(cost.date, cost.currency): piece.address for piece in pieces if (cost := piece.manifest.cost)}
    if len(tables) > 1:
        told = "; ".join(f"{address} by that of {date} in {currency}" for (date, currency), address in tables.items())
        raise MergeError(f"the runs are priced by different tables ({told})")
    found: dict[str, tuple[Price, str]] = {}
    for piece in pieces:
        for model, price in piece.manifest.cost.prices.items() if piece.manifest.cost else ():
            other, address = found.setdefault(model, (price, piece.address))
            if price != other:
                raise MergeError(
                    f"the runs price {model} differently: {address} at {_told(other)}, "
                    f"{piece.address} at {_told(price)} of a million tokens"
                )


def _told(price: Price) -> str:
    return f"{price.input:g} (input) and {price.output:g} (output)"


def _prices(pieces: Sequence[Piece]) -> dict[str, Price]:
    """Those that the runs used."""
    return {
        name: price for piece in pieces if piece.manifest.cost for name, price in piece.manifest.cost.prices.items()
    }


def _added(languages: Sequence[Mapping[str, DataCounts]]) -> dict[str, DataCounts]:
    sums: dict[str, Counter[str]] = {}
    for counts in languages:
        for language, found in counts.items():
            sums.setdefault(language, Counter()).update(asdict(found))
    return {language: DataCounts(**found) for language, found in sorted(sums.items())}
