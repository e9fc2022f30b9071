"""What two runs must have in common before one is held against the other."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import orjson

from memdock_evaluator.gate.shape import GateError
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import JudgeFacts, ModelFacts, Plan


def refuse_other(results: tuple[str, Manifest], baseline: tuple[str, Manifest]) -> None:
    """Raises `GateError` where data, answerer or judges are not the same, and for a run that is not complete.

    Data files by their hashes, prompts and rubrics by theirs, models by name, address and settings: where one of these
    is another, a difference says nothing of the memory system.
    """
    for address, manifest in (results, baseline):
        if manifest.finished is None:
            raise GateError(f"{address} is not complete: finish the run first")
    one, other = (_identity(manifest.plan) for _, manifest in (baseline, results))
    if found := list(_differences("", one, other)):
        listed = "\n  ".join(found)
        raise GateError(
            f"{results[0]} and the baseline {baseline[0]} cannot be held against each other: data, answerer or judge "
            f"are not the same. They differ in\n  {listed}\nMake a new baseline with what the results were made with."
        )


def _identity(plan: Plan) -> Mapping[str, Any]:
    return {
        "data": {file.sha256: "there" for file in plan.data.files},
        "answerer": _model(plan.answerer),
        "judge": _model(plan.judge),
        "judges": {name: _judge(judge) for name, judge in plan.judges.items()},
    }


def _judge(judge: JudgeFacts) -> Mapping[str, Any]:
    return {"primary_for": sorted(judge.primary_for), **_model(judge.model)}


def _model(facts: ModelFacts) -> Mapping[str, Any]:
    """Prompts and rubrics by their hashes alone: where their files lie decides nothing."""
    hashes = {
        name: {language: fact.sha256 for language, fact in getattr(facts, name).items()}
        for name in ("prompts", "rubrics")
    }
    return {**asdict(facts), **hashes}


def _differences(path: str, one: Any, other: Any) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in one | other:  # type: ignore[operator]
            yield from _differences(f"{path}.{key}".lstrip("."), one.get(key), other.get(key))
    elif one != other:
        yield f"{path}: baseline {_told(one)}, results {_told(other)}"


def _told(value: Any) -> str:
    return "has none" if value is None else orjson.dumps(value).decode()
