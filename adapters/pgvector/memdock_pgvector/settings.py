"""What a server is started with, and the part of it that changes its answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdock_pgvector import terms
from memdock_pgvector.ranking import BM25_B, BM25_K1, Fusion


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What changes the answers of a system.

    `reply_chars`: how much of an assistant's (or tool's) turn goes into the vector; what a user said goes in whole, and
    keywords are always those of the whole text. 2,000 characters are about 512 tokens: in conversations with assistants
    the replies are most of the text, and embedding is nearly all of the time of storing.
    `index_from`: chunks from which on a space gets an HNSW index (only `dense` searches by it). `ef_search`: how many
    neighbours a search of the index looks at, 1 to 1,000; more find more and take longer.
    """

    fusion: Fusion = Fusion.HYBRID
    reply_chars: int = 2_000
    index_from: int = 20_000
    ef_search: int = 200

    @property
    def keeps_terms(self) -> bool:
        """Whether words are searched, and so kept."""
        return self.fusion is not Fusion.DENSE

    def config(self) -> Mapping[str, Any]:
        """For the digest of the configuration."""
        words = {"bm25": {"k1": BM25_K1, "b": BM25_B}, "terms": terms.VERSION} if self.keeps_terms else {}
        index = {} if self.keeps_terms else {"index_from": self.index_from, "ef_search": self.ef_search}
        return {"fusion": self.fusion.value, "reply_chars": self.reply_chars, **words, **index}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One system. `database`: a `postgresql://` address; empty: PostgreSQL is run in the folder `data`."""

    system: str
    ranking: Ranking
    database: str
    data: Path
    embedder: str
    embedder_key: str
    embedding_cache: Path | None
