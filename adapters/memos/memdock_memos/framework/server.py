"""The handlers of MemOS's product server, put together for PostgreSQL alone, and mended.

MemOS's own start also wants RabbitMQ's client, an internet search and a scheduler's database.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from memos.api.config import APIConfig
from memos.api.handlers.add_handler import AddHandler
from memos.api.handlers.base_handler import HandlerDependencies
from memos.api.handlers.config_builders import (
    build_embedder_config,
    build_graph_db_config,
    build_llm_config,
    build_mem_reader_config,
    build_reranker_config,
)
from memos.api.handlers.search_handler import SearchHandler
from memos.chunkers.factory import ChunkerFactory
from memos.chunkers.sentence_chunker import SentenceChunker
from memos.embedders.factory import EmbedderFactory
from memos.llms.factory import LLMFactory
from memos.mem_cube.navie import NaiveMemCube
from memos.mem_reader import multi_modal_struct
from memos.mem_reader.factory import MemReaderFactory
from memos.mem_reader.utils import count_tokens_text
from memos.mem_scheduler.memory_manage_modules.retriever import SchedulerRetriever
from memos.memories.textual.simple_tree import SimpleTreeTextMemory
from memos.memories.textual.tree_text_memory.organize.manager import MemoryManager
from memos.memories.textual.tree_text_memory.retrieve.retrieve_utils import FastTokenizer
from memos.memories.textual.tree_text_memory.retrieve.searcher import Searcher
from memos.reranker.factory import RerankerFactory

from memdock_memos.framework.extraction import read_extraction
from memdock_memos.framework.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What answers `/product/add` and `/product/search`, and what they store in."""

    add: AddHandler
    search: SearchHandler
    store: Store


def open_server(url: str) -> Server:
    """The server on the database at `url`, by the variables that MemOS reads (`start.py`)."""
    _mend()
    cube = APIConfig.get_default_cube_config().text_mem.config
    store = Store(url, build_graph_db_config().config)
    llm = LLMFactory.from_config(build_llm_config())
    embedder = EmbedderFactory.from_config(build_embedder_config())
    reranker = RerankerFactory.from_config(build_reranker_config())
    reader = MemReaderFactory.from_config(build_mem_reader_config(), graph_db=store)
    # An agent's tools are no dialogue, and each text with "tool:" in it would be a further chat call.
    reader._process_tool_trajectory_fine = lambda *_, **__: []  # noqa: SLF001
    memory = SimpleTreeTextMemory(
        llm=llm,
        embedder=embedder,
        mem_reader=reader,
        graph_db=store,
        reranker=reranker,
        memory_manager=MemoryManager(store, embedder, llm, memory_size=cube.memory_size, is_reorganize=False),
        config=cube,
        tokenizer=FastTokenizer(),
    )
    searcher = memory.get_searcher(manual_close_internet=True, process_llm=reader.general_llm)
    reader.set_searcher(searcher)
    # What is added is stored when the call returns: nothing is left to be done later. A fine search asks by it.
    scheduler = SimpleNamespace(
        submit_messages=lambda **_: None,
        retriever=SchedulerRetriever(process_llm=reader.general_llm, config=SimpleNamespace()),
    )
    parts = HandlerDependencies(
        naive_mem_cube=NaiveMemCube(text_mem=memory, act_mem=None, para_mem=None),
        mem_reader=reader,
        mem_scheduler=scheduler,
        searcher=searcher,
        embedder=embedder,
        reranker=reranker,
        graph_db=store,
        feedback_server=SimpleNamespace(),  # asked for, and used for feedback and deep search alone
        deepsearch_agent=SimpleNamespace(),
    )
    return Server(add=AddHandler(parts), search=SearchHandler(parts), store=store)


class _Chunker(SentenceChunker):  # type: ignore[misc]
    """MemOS's own wants a tokenizer from a hub, and fails on what `chonkie` gives back today.

    Tokens are counted as the reader counts them, which says that a text is too long.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config.model_copy(update={"tokenizer_or_token_counter": count_tokens_text}))

    def chunk(self, text: str) -> list[str]:
        protected, urls = self.protect_urls(text)
        return [self.restore_urls(part.text, urls) for part in self.chunker.chunk(protected)]


def _mend() -> None:
    """Puts in place of MemOS's own parts those that reach no hub, and lose nothing."""
    ChunkerFactory.backend_to_class["sentence"] = _Chunker
    multi_modal_struct.parse_json_result = read_extraction
    # It hides memories with words such as "Filename:" in them.
    Searcher._filter_intermediate_content = lambda _self, results: results  # noqa: SLF001
