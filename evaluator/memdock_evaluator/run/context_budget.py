"""How much of a system's memories the answer model is given: whole memories, best first, within a budget of tokens.

Tokens are the evaluator's own estimate (`tokens.estimated_tokens`) of the memories as the prompt shows them, with their
times: no model's tokenizer, so that the same text is as long for every system and every answer model.
"""

from bisect import bisect_right
from dataclasses import replace

from memdock_evaluator.answer.answerer import Asked, context
from memdock_evaluator.answer.tokens import estimated_tokens


def context_size(asked: Asked) -> int:
    """Tokens of the memories; 0 without any."""
    return estimated_tokens(context(asked)) if asked.memories else 0


def within(asked: Asked, tokens: int | None) -> Asked:
    """The question with the first memories that take at most `tokens` together; `None`: with all.

    The first that does not fit ends it, also where a shorter one follows: what is given is what is ranked highest.
    """
    if tokens is None:
        return asked

    def size(memories: int) -> int:
        return context_size(_first(asked, memories))

    fitting = bisect_right(range(1, len(asked.memories) + 1), tokens, key=size)
    return _first(asked, fitting)


def _first(asked: Asked, memories: int) -> Asked:
    return replace(asked, memories=asked.memories[:memories])
