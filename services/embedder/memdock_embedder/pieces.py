"""Long texts and long requests in pieces of bounded work."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from memdock_embedder.backends import Embedded, unit

_LAST_SPACE = re.compile(rb".*\s", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Texts of which the long ones are cut. `parts`: all of them in order; `counts`: how many of them each text has."""

    parts: Sequence[str]
    counts: Sequence[int]

    @classmethod
    def of(cls, texts: Sequence[str], *, max_bytes: int) -> "Parts":
        """Cuts each text that has more than `max_bytes` of UTF-8 (which tell its tokens better than characters do)."""
        cut = [_cut(text, max_bytes) for text in texts]
        return cls(parts=[part for parts in cut for part in parts], counts=[len(parts) for parts in cut])

    def whole(self, embedded: Embedded) -> Embedded:
        """Of the answer for the parts that for the texts: a cut one's vector is its parts' mean, weighted by bytes."""
        if len(self.parts) == len(self.counts):
            return embedded
        vectors = []
        for end, count in zip(accumulate(self.counts), self.counts, strict=True):
            rows = embedded.vectors[end - count : end]
            if count > 1:
                weights = np.array([[size_of(part) for part in self.parts[end - count : end]]], dtype=np.float32)
                rows = unit(weights @ rows)
            vectors.append(rows)
        return replace(embedded, vectors=np.concatenate(vectors))


def _cut(text: str, max_bytes: int) -> list[str]:
    """Parts of at most `max_bytes`, which joined are the text; cut behind white space where a part has any."""
    parts = []
    left = text.encode()
    while len(left) > max_bytes:
        fits = left[:max_bytes].decode(errors="ignore").encode()  # no half of a character
        space = _LAST_SPACE.match(fits)
        part = space[0] if space else fits
        parts.append(part.decode())
        left = left[len(part) :]
    return [*parts, left.decode()]


def size_of(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode())


def split(texts: Sequence[str], *, max_texts: int, max_bytes: int) -> list[Sequence[str]]:
    """The texts in order, in pieces within both bounds; a text that is longer by itself is a piece alone."""
    pieces: list[Sequence[str]] = []
    start = size = 0
    for place, text in enumerate(texts):
        if place > start and (place - start == max_texts or size + size_of(text) > max_bytes):
            pieces.append(texts[start:place])
            start, size = place, 0
        size += size_of(text)
    if start < len(texts):
        pieces.append(texts[start:])
    return pieces


def join(answers: Iterable[Embedded]) -> Embedded:
    """One answer of the answers to at least one piece, in order."""
    answers = list(answers)
    return Embedded(
        vectors=np.concatenate([answer.vectors for answer in answers]),
        tokens=sum(answer.tokens for answer in answers),
        estimated=any(answer.estimated for answer in answers),
        calls=sum(answer.calls for answer in answers),
    )
