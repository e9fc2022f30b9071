"""Adapters around real frameworks, as processes in environments of their own, before a scripted model server."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from memdock import Client, Turn, connect
from memdock.adapter.postgres import EmbeddedPostgres
from memdock.types import Feature, Support
from support.fake_mem0 import FakeMem0
from support.fake_zep import FakeZep
from support.hosted_service import Service
from support.model_server import ModelServer, ToolCall
from support.model_thread import in_thread
from support.postgres_rows import rows_that_hold
from support.processes import Daemon, clean_environment, free_port
from support.words import DIMENSION, embed_words

ROOT = Path(__file__).parents[2]
SOURCE_AWAY = 69
"""The exit code of `adapters/environment.py` where a framework's repository cannot be had."""
SAID = datetime(2019, 5, 4, 10, 30, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An adapter and what its framework's prompts are answered with.

    `chat` maps a request's body to the reply: every line that was said becomes a memory, those with the words
    "small talk" none. `flags` come on top of those that all adapters share. `chat_calls`: how many chat requests a
    turn of a user's costs, as the mean of a first and a second one. `tells_time`: whether prompts hold the time of a
    turn. `pairs`: whether a turn and its reply are one add. `service`: a fake of the hosted service behind it, which
    asks the models then; the adapter asks none. `distribution`: its folder in `adapters/`, where that has another
    name.
    """

    name: str
    chat: Callable[[dict[str, Any]], str | ToolCall]
    chat_calls: float
    tells_time: bool = True
    pairs: bool = False
    flags: Sequence[str] = ()
    service: Callable[[], Service] | None = None
    distribution: str = ""

    @property
    def home(self) -> str:
        """The name of its folder in `adapters/`, of its environment and of its command."""
        return self.distribution or self.name

    def __str__(self) -> str:
        return self.name


def mem0_chat(body: dict[str, Any]) -> str:
    """mem0 2.x: facts from the new messages."""
    prompt = body["messages"][-1]["content"]
    said = re.search(r"## New Messages\n(.*?)\n## ", prompt, re.DOTALL)
    assert said is not None, "mem0's prompt has changed"
    lines = [line.partition(": ")[2] for line in said[1].splitlines() if ": " in line]
    kept = [line for line in lines if "small talk" not in line]
    return json.dumps({"memory": [{"id": str(place), "text": line} for place, line in enumerate(kept)]})


def graphiti_chat(body: dict[str, Any]) -> str:
    """graphiti: every turn is one fact between its speaker and its first word."""
    prompt = body["messages"][-1]["content"]
    kind = body["response_format"]["json_schema"]["name"]
    if kind == "NodeResolutions":
        ids = re.findall(r'"id": (\d+)', prompt.partition("<EXISTING ENTITIES>")[0])
        answers = [{"id": int(each), "name": "", "duplicate_candidate_id": -1} for each in ids]
        return json.dumps({"entity_resolutions": answers})
    if kind == "EdgeDuplicate":
        return json.dumps({"duplicate_facts": [], "contradicted_facts": []})
    if kind == "SummarizedEntities":
        return json.dumps({"summaries": []})
    if kind == "EdgeTimestamps":
        return json.dumps({"valid_at": None, "invalid_at": None})
    said = re.search(r"<CURRENT[ _]MESSAGE>\s*(.*?)\s*</CURRENT", prompt, re.DOTALL)
    assert said is not None, f"graphiti's prompt for {kind} has changed"
    speaker, _, line = said[1].partition(": ")
    first = line.partition(" ")[0]
    small = "small talk" in line
    if kind == "ExtractedEntities":
        names = [] if small else [speaker, first]
        return json.dumps({"extracted_entities": [{"name": name, "entity_type_id": 0} for name in names]})
    assert kind == "ExtractedEdges", f"graphiti asks for {kind}, which is new"
    when = re.search(r"<REFERENCE_TIME>\s*(\S+ \S+)", prompt)
    assert when is not None
    fact = {
        "source_entity_name": speaker,
        "target_entity_name": first,
        "relation_type": "SAID",
        "fact": line,
        "valid_at": when[1].replace(" ", "T"),
    }
    return json.dumps({"edges": [] if small else [fact]})


def mem0g_chat(body: dict[str, Any]) -> str | ToolCall:
    """mem0 1.x's graph: every word is a name; a line is what its first word is to the speaker; nothing is outdated."""
    tool, (system, said) = body["tools"][0]["function"]["name"], [each["content"] for each in body["messages"]]
    if tool == "extract_entities":
        words = [word for line in said.splitlines() if "small talk" not in line for word in line.split()]
        return tool, {"entities": [{"entity": word, "entity_type": "word"} for word in words]}
    if tool == "establish_relationships":
        speaker = re.search(r'Use "user_id: (\S+)" as the source', system)
        assert speaker is not None, "mem0's prompt has changed"
        kept = [line for line in said.partition("Text: ")[2].splitlines() if "small talk" not in line]
        told = [line.partition(" ") for line in kept]
        return tool, {"entities": [{"source": a, "relationship": b, "destination": speaker[1]} for a, _, b in told]}
    assert tool == "delete_graph_memory"
    return "Nothing of this is outdated."


def cortex_chat(body: dict[str, Any]) -> str:
    """cortex: a note has few words about it, and nothing of it evolves."""
    if "You are an AI memory evolution agent" in body["messages"][-1]["content"]:
        lists = ("actions", "suggested_connections", "tags_to_update", "new_context_neighborhood")
        more = ("new_tags_neighborhood", "merge_candidates")
        return json.dumps({"should_evolve": False, **{name: [] for name in (*lists, *more)}})
    return json.dumps({"keywords": ["word"], "context": "What was said.", "tags": ["talk"]})


def hosted_chat(body: dict[str, Any]) -> str:
    """A fake of a hosted service: what was said, or nothing."""
    said = str(body["messages"][-1]["content"])
    return "" if "small talk" in said else said


def memos_chat(body: dict[str, Any]) -> str:
    """MemOS: every line of the conversation is a memory."""
    prompt = body["messages"][-1]["content"]
    said = re.search(r".*Conversation:\n(.*?)\s*Your Output:$", prompt, re.DOTALL)
    assert said is not None, "MemOS's prompt has changed"
    lines = re.findall(r"^(?:(?:user|assistant|system|tool): ?)?(?:\[[^\]]*\]: )?(.+)$", said[1], re.MULTILINE)
    kept = [{"key": "", "memory_type": "UserMemory", "value": line, "tags": []} for line in lines]
    memories = [each for each in kept if "small talk" not in each["value"]]
    return json.dumps({"memory list": memories, "summary": ""})


MEM0 = Adapter(name="mem0", chat=mem0_chat, chat_calls=1, pairs=True)
MEM0G = Adapter(name="mem0g", chat=mem0g_chat, chat_calls=3, tells_time=False, pairs=True)
GRAPHITI = Adapter(name="graphiti", chat=graphiti_chat, chat_calls=2.5)
CORTEX = Adapter(name="cortex", chat=cortex_chat, chat_calls=1.5)
ZEP_CLOUD = Adapter(name="zep-cloud", chat=hosted_chat, chat_calls=1, service=FakeZep)
# Its pairs have tests of their own: the service's events keep what is forgotten, and say so.
MEM0_HOSTED = Adapter(name="mem0-hosted", chat=hosted_chat, chat_calls=1, service=FakeMem0)
MEMOS = Adapter(name="memos", chat=memos_chat, chat_calls=1, pairs=True)
MEMOS_LIGHT = Adapter(
    name="memos-light",
    chat=memos_chat,
    chat_calls=1,
    pairs=True,
    flags=("--system", "memos-light", "--memory", "light"),
    distribution="memos",
)
ADAPTERS = (MEM0, MEM0G, GRAPHITI, CORTEX, ZEP_CLOUD, MEM0_HOSTED, MEMOS, MEMOS_LIGHT)


def environment(name: str) -> Path:
    """The `bin` folder of the adapter's environment, built where it is missing.

    Skips the test where the framework is on no package index and its repository cannot be had.
    """
    built = _built(name)
    if built.returncode == SOURCE_AWAY:
        pytest.skip(f"{name} is not tested: {built.stderr.strip().splitlines()[-1]}")
    assert built.returncode == 0, f"the environment of {name} could not be built: {built.stderr}"
    return Path(built.stdout.strip()) / "bin"


@cache
def _built(name: str) -> "subprocess.CompletedProcess[str]":
    sources = {each: value for each, value in os.environ.items() if re.fullmatch("MEMDOCK_[A-Z0-9]+_SOURCE", each)}
    command = [sys.executable, str(ROOT / "adapters/environment.py"), name]
    return subprocess.run(command, env=clean_environment(sources), capture_output=True, text=True, check=False)


@dataclass(slots=True, kw_only=True)
class RunningAdapter:
    """A served adapter. `folder` is its data folder."""

    adapter: Adapter
    process: Daemon
    folder: Path
    models: ModelServer
    service: Service | None = None

    def client(self, timeout_s: float = 60.0) -> Client:
        """A client of its gRPC face."""
        return connect(f"grpc://127.0.0.1:{self.process.ports()['grpc']}", timeout_s=timeout_s)

    def places_of(self, words: Sequence[str]) -> list[str]:
        """Every "place: word": files of the data folder and of its log, and tables of an embedded PostgreSQL.

        PostgreSQL's own files are looked at by its tables: a deleted row stays on its page until that is used again.
        """
        found = self.service.places_of(words) if self.service is not None else []
        files = [path for path in self.folder.rglob("*") if path.is_file() and "postgres" not in path.parts]
        for path in [*files, self.process.log_file]:
            content = path.read_bytes()
            found += [f"{path.name}: {word}" for word in words if word.encode() in content]
        return found + (
            rows_that_hold(EmbeddedPostgres(self.folder).url, words) if (self.folder / "postgres").exists() else []
        )

    def seen(self, kind: str) -> int:
        """How many requests of a kind the model server got."""
        return sum(each == kind for each, _ in self.models.requests)


def turn(turn_id: str, text: str, session: str = "s1", time: datetime | None = SAID) -> Turn:
    """A user's turn."""
    return Turn(turn_id=turn_id, session_id=session, role="user", text=text, time=time)


def fill(client: Client, name: str, *turns: Turn) -> None:
    """Stores turns, all of them."""
    client.add_turns(name, list(turns))
    flushed = client.flush(name, timeout_s=120)
    assert flushed.done
    assert not flushed.failed, flushed.failed


def declares(client: Client, feature: Feature) -> bool:
    """Whether the system says that it can."""
    return client.describe().features.get(feature, Support.UNSUPPORTED) is not Support.UNSUPPORTED


def space() -> str:
    """A space of a test's own."""
    return f"space-{uuid4().hex}"


@contextmanager
def running(
    adapter: Adapter, folder: Path, models: ModelServer, *, url: str = "", flags: Mapping[str, str] | None = None
) -> Iterator[RunningAdapter]:
    """Starts the adapter on free ports. `url`: where it reaches models, else those of `models` themselves."""
    models.chat, models.embed = adapter.chat, embed_words
    data, at = folder / "data", url or models.url
    with ExitStack() as ends:
        service = adapter.service() if adapter.service is not None else None
        if service is not None:
            service.model_url = at
            ends.enter_context(in_thread(service.serving, adapter.name))
        given = {
            "--data": str(data),
            **(to_models(at) if service is None else to_service(service)),
            "--grpc": f"127.0.0.1:{free_port()}",
            "--http": f"127.0.0.1:{free_port()}",
            **(flags or {}),
        }
        words = ["serve", *adapter.flags, *(word for pair in given.items() for word in pair)]
        command = str(environment(adapter.home) / f"memdock-{adapter.home}")
        process = Daemon(adapter.name, command, words, folder)
        process.start()
        ends.callback(process.stop)
        yield RunningAdapter(adapter=adapter, process=process, folder=data, models=models, service=service)
    assert service is None or not service.refused, service.refused


def to_models(url: str) -> dict[str, str]:
    """The options by which an adapter reaches models."""
    return {
        "--chat-url": url,
        "--chat-model": "m",
        "--embedder-url": url,
        "--embedder-model": "e",
        "--embedder-dimension": str(DIMENSION),
    }


def to_service(service: Service) -> dict[str, str]:
    """The options by which a hosted adapter reaches a fake."""
    return {"--url": service.url + service.base, "--api-key": service.key}
