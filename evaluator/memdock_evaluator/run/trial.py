"""A small question to the answer model and the judge before anything is stored: what cannot work is told at once."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC
from typing import TypeVar

from memdock_evaluator.answer.answerer import Answerer, Asked
from memdock_evaluator.answer.endpoint import ModelEndpoint
from memdock_evaluator.answer.judge import Judge, ToJudge
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.results.rows import Outcome

ReplyT = TypeVar("ReplyT")

_QUESTION, _ANSWER = "2 + 2 = ?", "4"
_SPARE_S = 10.0
"""Beyond the time-out of one call: what is answered with an error is tried again, what hangs is not."""


async def try_answerer(answerer: Answerer, endpoint: ModelEndpoint, language: str) -> None:
    """Raises `RunStoppedError` where the endpoint does not answer a question."""
    asked = Asked(text=_QUESTION, date=None, language=language, zone=UTC, memories=())
    await _tried(answerer.answer(asked, repeat=0), endpoint)


async def try_judge(judge: Judge, endpoint: ModelEndpoint, language: str) -> None:
    """Raises `RunStoppedError` where the endpoint gives no verdict that can be read."""
    item = ToJudge(question=_QUESTION, references=(_ANSWER,), answer=_ANSWER, language=language)
    verdict = await _tried(judge.judge(item, repeat=0), endpoint)
    if verdict is not None and verdict.label is None:
        raise RunStoppedError(f"{endpoint.label} cannot judge: {verdict.note} (--judge-form, --judge-prompt)")


async def _tried(reply: Awaitable[ReplyT], endpoint: ModelEndpoint) -> ReplyT | None:
    """The reply; `None` where the provider declines this question, which says nothing about others."""
    try:
        async with asyncio.timeout(endpoint.timeout_s + _SPARE_S):
            return await reply
    except TimeoutError as error:
        raise RunStoppedError(f"{endpoint.label} did not answer within {endpoint.timeout_s:g} s") from error
    except Fault as fault:
        if fault.outcome is Outcome.REFUSED:
            return None
        raise RunStoppedError(fault.detail) from fault
