"""The manifest: read back as written, and two plans compared field by field."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memdock.types import Limits, Software
from memdock_evaluator.results.manifest import Manifest, ManifestError
from memdock_evaluator.results.plan import (
    DataCounts,
    DataFacts,
    DataFile,
    ModelFacts,
    Plan,
    PromptFact,
    SystemFacts,
    differences,
)

PLAN = Plan(
    evaluator_version="0.1.0",
    data=DataFacts(
        files=(DataFile(path="a.jsonl", sha256="00"),),
        format="own",
        zone="UTC",
        dialogues=(),
        languages={"ru": DataCounts(dialogues=1, questions=3)},
        oddities={"turn-blank": 2},
    ),
    systems=(
        SystemFacts(
            name="toy",
            system="toy",
            k=10,
            ingest_unit="pair",
            adapter=Software(name="toy", version="1"),
            features={"SOURCES": "NATIVE"},
            limits=Limits(),
            config_digest="sha256:1",
        ),
        SystemFacts(name="baseline:oracle", baseline=True),
    ),
    repeats=1,
    seed=0,
    reference_time=False,
    as_of=False,
    answerer=ModelFacts(kind="openai", model="m", prompts={"ru": PromptFact(file="answer.ru.txt", sha256="11")}),
    judge=ModelFacts(kind="offline-overlap"),
)
MANIFEST = Manifest(
    run_id="r", started=datetime(2024, 1, 1, tzinfo=UTC), command=("memdock-eval",), versions={"python": "3"}, plan=PLAN
)


def test_a_manifest_survives_the_file() -> None:
    assert Manifest.from_json(MANIFEST.to_json(), place="x") == MANIFEST


def test_a_manifest_of_another_version_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"runs/x/manifest.json: plan.repeats: .*another version"):
        Manifest.from_json(MANIFEST.to_json().replace(b'"repeats"', b'"repeat"'), place="runs/x/manifest.json")


def test_equal_plans_do_not_differ_after_the_file() -> None:
    assert differences(Manifest.from_json(MANIFEST.to_json(), place="x").plan, PLAN) == []


def test_what_differs_is_named_by_its_path() -> None:
    toy, oracle = PLAN.systems
    other = replace(
        PLAN,
        repeats=2,
        systems=(
            replace(toy, config_digest="sha256:2", k=5),
            oracle,
            SystemFacts(name="baseline:refusal", baseline=True),
        ),
        answerer=replace(PLAN.answerer, prompts={"ru": PromptFact(file="mine.txt", sha256="22")}),
    )
    found = differences(PLAN, other)
    assert "repeats: then 1, now 2" in found
    assert "systems.toy.k: then 10, now 5" in found
    assert 'systems.toy.config_digest: then "sha256:1", now "sha256:2"' in found
    assert any(line.startswith("systems.baseline:refusal: then absent, now {") for line in found)
    assert 'answerer.prompts.ru.sha256: then "11", now "22"' in found
    assert len(found) == 6
