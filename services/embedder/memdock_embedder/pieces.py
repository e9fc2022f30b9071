"""Long requests in pieces of bounded work."""

from collections.abc import Iterable, Sequence

import numpy as np

from memdock_embedder.backends import Embedded


def split(texts: Sequence[str], *, max_texts: int, max_characters: int) -> list[Sequence[str]]:
    """The texts in order, in pieces within both bounds; a text that is longer by itself is a piece alone."""
    pieces: list[Sequence[str]] = []
    start = characters = 0
    for place, text in enumerate(texts):
        if place > start and (place - start == max_texts or characters + len(text) > max_characters):
            pieces.append(texts[start:place])
            start, characters = place, 0
        characters += len(text)
    if start < len(texts):
        pieces.append(texts[start:])
    return pieces


def join(parts: Iterable[Embedded]) -> Embedded:
    """One answer of the answers to at least one piece, in order."""
    parts = list(parts)
    return Embedded(
        vectors=np.concatenate([part.vectors for part in parts]),
        tokens=sum(part.tokens for part in parts),
        estimated=any(part.estimated for part in parts),
        calls=sum(part.calls for part in parts),
    )
