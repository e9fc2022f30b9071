"""All adapters and the reference memory in one evaluation, by the plan file that users have; all models scripted.

What must hold for every system: each question has an outcome, each turn was stored, users are kept apart, what is
forgotten is looked for, and what the report says that a system spent is what the meter counted and the server saw.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.adapters import ADAPTERS, ROOT, Adapter, environment, running
from support.model_server import ModelServer, ToolCall
from support.model_thread import models_in_thread
from support.processes import Daemon, free_port, run_command
from support.whole_stack import gateway_config, serve_flags
from support.words import embed_words

PLAN = ROOT / "adapters" / "plan.yaml"
REFERENCE = ("rag-dense", "rag-hybrid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """A gateway before all systems, the meter between them and the models.

    `systems`: those of the plan, but for frameworks that cannot be had here.
    """

    folder: Path
    systems: Sequence[str]
    url: str
    key_file: Path
    models: ModelServer
    meter: Daemon

    def command(self, *words: str | Path, of_gateway: bool = True, ends: Sequence[int] = (0,)) -> str:
        """Runs `memdock-eval`; what it printed. `ends`: the exit codes that are right."""
        where = ("--url", self.url, "--key-file", self.key_file) if of_gateway else ()
        done = run_command("memdock-eval", words[0], *where, *words[1:], timeout_s=900)
        assert done.code in ends, done.words
        return done.output

    def metered(self) -> dict[str, tuple[int, int]]:
        """What the meter has counted so far, by system: tokens in and out."""
        done = run_command("memdock-meter", "usage", "--config", self.folder / "meter.yaml")
        assert done.code == 0, done.words
        totals: dict[str, tuple[int, int]] = {}
        for line in map(json.loads, done.output.splitlines()):
            before = totals.get(line["system"], (0, 0))
            totals[line["system"]] = (before[0] + line["input_tokens"], before[1] + line["output_tokens"])
        return totals


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    folder = tmp_path_factory.mktemp("everything")
    with ExitStack() as ends:
        models = ends.enter_context(models_in_thread(ModelServer()))
        meter = ends.enter_context(_meter(folder, models))
        asked = f"http://127.0.0.1:{meter.ports()['http']}/s"
        addresses = {}
        for each in _adapters():
            home = folder / each.name
            home.mkdir()
            flags = {"--chat-model": f"{each.name}-chat", "--embedder-model": f"{each.name}-embedding"}
            started = ends.enter_context(running(each, home, models, url=f"{asked}/{each.name}/v1", flags=flags))
            addresses[each.name] = f"grpc://127.0.0.1:{started.process.ports()['grpc']}"
        for name in REFERENCE:
            port = free_port()
            flags_of = serve_flags(folder / "reference", name, f"{asked}/{name}/v1#{name}-embedding", port, free_port())
            ends.enter_context(_served(Daemon(name, "memdock-pgvector", flags_of, folder)))
            addresses[name] = f"grpc://127.0.0.1:{port}"
        grpc_port = free_port()
        config = gateway_config(folder / "gateway", addresses, grpc_port, free_port())
        ends.enter_context(_served(Daemon("gateway", "memdock-gateway", ["serve", "--config", config], folder)))
        models.chat, models.embed = _chat, embed_words
        yield Everything(
            folder=folder,
            systems=[name for name in _planned() if name in addresses],
            url=f"grpc://127.0.0.1:{grpc_port}",
            key_file=config.parent / "first.key",
            models=models,
            meter=meter,
        )


def _planned() -> list[str]:
    plan = yaml.safe_load(PLAN.read_text())
    return list(plan["system"])


def _adapters() -> Iterator[Adapter]:
    """Those of the plan, but for frameworks that cannot be had here, whose own tests say so."""
    for each in [each for each in ADAPTERS if each.name in _planned()]:
        try:
            environment(each.home)
        except pytest.skip.Exception:
            continue
        yield each


@contextmanager
def _served(process: Daemon) -> Iterator[Daemon]:
    process.start()
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def _meter(folder: Path, models: ModelServer) -> Iterator[Daemon]:
    names = _planned()
    priced = {name: {"input": 1.0, "output": 4.0} for name in ("answerer", "judge")}
    for name in names:
        priced |= {f"{name}-chat": {"input": 1.0, "output": 4.0}, f"{name}-embedding": {"input": 0.1, "output": 0.0}}
    prices = {"date": "2026-01-01", "currency": "USD", "models": priced}
    (folder / "prices.yaml").write_text(yaml.safe_dump(prices))
    config = {
        "listen": f"127.0.0.1:{free_port()}",
        "prices": "prices.yaml",
        "store": "meter.sqlite",
        "upstreams": {"models": {"url": models.url}},
        "systems": {name: {"chat": "models", "embeddings": "models"} for name in names},
    }
    (folder / "meter.yaml").write_text(yaml.safe_dump(config))
    with _served(Daemon("meter", "memdock-meter", ["serve", "--config", folder / "meter.yaml"], folder)) as meter:
        yield meter


def _chat(body: dict[str, Any]) -> str | ToolCall:
    """Each system asks a model of its own name, so that one server answers the prompts of all frameworks."""
    prompt = body["messages"][-1]["content"]
    if body["model"] == "answerer":
        return _answer(prompt)
    if body["model"] == "judge":
        return _verdict(prompt)
    (asking,) = [each for each in ADAPTERS if body["model"] == f"{each.name}-chat"]
    return asking.chat(body)


def _words(text: str) -> Counter[str]:
    return Counter(word for word in re.findall(r"\w+", text.lower()) if len(word) > 3)


def _answer(prompt: str) -> str:
    """The note that shares most words with the question."""
    notes, _, asked = prompt.rpartition("\n\n")
    lines = [line for line in notes.splitlines() if line.strip()]
    return max(lines, key=lambda line: (_words(line) & _words(asked)).total(), default="nothing")


def _verdict(prompt: str) -> str:
    """Right where the answer holds most words of the reference."""
    *_, reference, answer, _ = prompt.split("\n\n")
    wanted, said = _words(reference.partition(": ")[2]), _words(answer.partition(": ")[2])
    return json.dumps({"reason": "words", "verdict": 2 if (wanted & said).total() * 2 > wanted.total() else 0})


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_one_plan_evaluates_them_all(everything: Everything, tmp_path: Path) -> None:
    out, forgetting, leaks = tmp_path / "run", tmp_path / "forgetting", tmp_path / "leaks"
    part = ["--dialogue", "0", "--language", "en"]
    asked = ["--answer-url", everything.models.url, "--answer-model", "answerer"]
    asked += ["--judge-url", everything.models.url, "--judge-model", "judge"]
    priced = ["--prices", str(everything.folder / "prices.yaml")]
    systems = [word for name in everything.systems for word in ("--system", name)]
    before = everything.metered()
    everything.command("run", "--plan", PLAN, *systems, *part, *asked, *priced, "--out", out)
    metered = everything.metered()  # before the suites
    everything.command(
        "forgetting", *systems, "--data", "own", *part, "--targets", "2", "--out", forgetting, ends=(0, 3)
    )
    everything.command("leaks", *systems, "--pairs", "1", "--only", "en", "--out", leaks)
    said = everything.command("report", out, "--with", forgetting, "--with", leaks, of_gateway=False)
    print(said)

    rows = {row["system"]: row for row in _table(out, "systems")}
    inside = {row["system"]: row for row in _table(out, "cost") if row["purpose"] == "memory"}
    for name in everything.systems:
        row = rows[name]
        assert row["coverage"] == 100.0, row
        assert (row["leaks"], row["of trials"] > 0) == (0, True), row
        assert row["of forgotten"] > 0, row
        # A system that starts may ask its embedder how long vectors are: that is of no space.
        spent = tuple(after - earlier for after, earlier in zip(metered[name], before.get(name, (0, 0)), strict=True))
        assert (row["tokens inside, in"], row["tokens inside, out"]) == spent, row
        assert float(row["money inside, USD"]) > 0, row
        assert inside[name]["unpriced"] == "", inside[name]
        assert name in said


def _table(out: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((out / "tables" / f"{name}.json").read_text())["rows"]
    return rows
