"""What Forget and Reset answer: the system's part and the ledger's, put together."""

from collections.abc import Iterable
from dataclasses import replace

from memdock.convert import wire_erasure, wire_residual, wire_timing, wire_usage
from memdock.ledger import Intent, Resolution, Taken
from memdock.types import Erasure, Residue, Selection
from memdock.usage import Meter
from memdock.v1 import memory_pb2 as pb


def for_system(selection: Selection, resolution: Resolution) -> Selection:
    """The selection as a system gets it: with the turns of the selected sessions."""
    return replace(selection, turn_ids=resolution.turn_ids) if selection.session_ids else selection


def with_foreseen(erasure: Erasure, intent: Intent) -> Erasure:
    """What the system took, in this attempt or in one whose end nobody heard of."""
    if not intent.foreseen_memories:
        return erasure
    gone = set(intent.foreseen_memories)
    return replace(
        erasure,
        erased_memory_ids=tuple(dict.fromkeys((*intent.foreseen_memories, *erasure.erased_memory_ids))),
        erased_turn_ids=tuple(dict.fromkeys((*intent.foreseen_turns, *erasure.erased_turn_ids))),
        not_found=tuple(memory_id for memory_id in erasure.not_found if memory_id not in gone),
    )


def forget_answer(intent: Intent, erasure: Erasure, taken: Taken, meter: Meter) -> bytes:
    """What a Forget took: a ForgetResponse."""
    whole = _whole(intent.resolution, erasure, taken.turn_ids, [*erasure.residual, taken.residue])
    return _forget_response(whole, meter).SerializeToString()


def preview_answer(resolution: Resolution, erasure: Erasure, taken: tuple[str, ...], meter: Meter) -> pb.ForgetResponse:
    """What a Forget would take."""
    return _forget_response(_whole(resolution, erasure, taken, erasure.residual), meter)


def reset_answer(intent: Intent, residual: Iterable[Residue], taken: Taken, meter: Meter) -> bytes:
    """How much a Reset took: a ResetResponse."""
    return pb.ResetResponse(
        erased_memories=intent.erased_memories,
        erased_turns=intent.erased_turns,
        residual=wire_residual(_by_component([*residual, taken.residue])),
        usage=wire_usage(meter.models),
        timing=wire_timing(meter.timing),
    ).SerializeToString()


def _forget_response(erasure: Erasure, meter: Meter) -> pb.ForgetResponse:
    response = wire_erasure(erasure)
    response.usage.CopyFrom(wire_usage(meter.models))
    response.timing.extend(wire_timing(meter.timing))
    return response


def _whole(resolution: Resolution, erasure: Erasure, taken: tuple[str, ...], residual: Iterable[Residue]) -> Erasure:
    """`taken`: turns that went beside those that were selected: what a selected memory was made from."""
    by_turns = bool(resolution.turn_ids or resolution.not_found)
    return Erasure(
        erased_memory_ids=erasure.erased_memory_ids,
        erased_turn_ids=tuple(dict.fromkeys((*resolution.held_turn_ids, *taken))),
        not_found=resolution.not_found if by_turns else erasure.not_found,
        residual=tuple(_by_component(residual)),
    )


def _by_component(residual: Iterable[Residue]) -> list[Residue]:
    """One entry for each component: what two parts of a server hold of it is added up."""
    merged: dict[str, Residue] = {}
    for one in residual:
        other = merged.get(one.component)
        merged[one.component] = one if other is None else _sum(other, one)
    return list(merged.values())


def _sum(left: Residue, right: Residue) -> Residue:
    return Residue(
        component=left.component,
        items=left.items + right.items,
        verified=left.verified and right.verified,
        note="; ".join(note for note in (left.note, right.note) if note),
    )
