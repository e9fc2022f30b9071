"""Faces compared: what differs between them is told, and what may differ is not."""

from typing import Any

import pytest

from memdock.client import AsyncClient
from memdock.conformance.case import CheckFailedError
from memdock.conformance.mirror import Mirrored
from memdock.errors import InvalidArgumentError, MemdockError, NotFoundError
from memdock.service import Call, Method
from memdock.v1 import memory_pb2 as pb


class Scripted:
    """A face that answers from a list, the last answer for ever."""

    def __init__(self, name: str, *answers: Any) -> None:
        self.name = name
        self.answers = [*answers]
        self.asked = 0

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, MemdockError):
            raise answer
        return answer


def found(*texts: str, score: float = 1.0, cost: int = 0) -> pb.RetrieveResponse:
    memories = [pb.Memory(memory_id=text, text=text, score=score) for text in texts]
    return pb.RetrieveResponse(memories=memories, usage=pb.Usage(models=[pb.ModelUsage(model="m", calls=cost)]))


async def ask(first: Scripted, second: Scripted) -> Any:
    faces: Any = (first, second)
    return await AsyncClient(Mirrored(*faces)).retrieve("space", "x")


async def test_cost_and_the_last_digits_of_scores_may_differ() -> None:
    first, second = Scripted("grpc", found("a", cost=1)), Scripted("http", found("a", score=1.000_000_01, cost=2))
    assert len((await ask(first, second)).memories) == 1
    assert (first.asked, second.asked) == (1, 1)


async def test_another_answer_is_told_without_its_text() -> None:
    with pytest.raises(CheckFailedError, match="answers differently over grpc and http: memories") as raised:
        await ask(Scripted("grpc", found("Kazan")), Scripted("http", found("Kazan", "Omsk")))
    assert "Omsk" not in str(raised.value)


async def test_a_space_on_which_work_goes_on_is_no_difference() -> None:
    first = Scripted("grpc", found(), found("a"))
    second = Scripted("http", found("a"))
    await ask(first, second)
    assert first.asked == 2


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (found(), "refused over grpc and taken over http"),
        (NotFoundError("SYSTEM_NOT_FOUND", "no"), "with VALIDATION_FAILED over grpc and with SYSTEM_NOT_FOUND over"),
    ],
)
async def test_another_refusal_is_told(second: Any, sentence: str) -> None:
    refusal = InvalidArgumentError("VALIDATION_FAILED", "no")
    with pytest.raises(CheckFailedError, match=sentence):
        await ask(Scripted("grpc", refusal), Scripted("http", second))


async def test_an_equal_refusal_is_the_callers() -> None:
    refusal = InvalidArgumentError("VALIDATION_FAILED", "no")
    with pytest.raises(InvalidArgumentError):
        await ask(Scripted("grpc", refusal), Scripted("http", refusal))
