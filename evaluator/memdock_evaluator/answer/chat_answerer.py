"""The answerer that asks a chat model."""

from collections.abc import Mapping

from memdock_evaluator.answer.abstention import abstains
from memdock_evaluator.answer.answerer import Answer, Asked, context
from memdock_evaluator.answer.dates import written
from memdock_evaluator.answer.endpoint import ModelEndpoint
from memdock_evaluator.answer.models import ChatModel
from memdock_evaluator.answer.prompts import Prompt, RefusalWords, facts_of
from memdock_evaluator.answer.providers import Providers
from memdock_evaluator.results.plan import ModelFacts

ANSWER_FIELDS = frozenset({"memories", "date", "question", "refusal"})
"""The placeholders of an answer prompt."""


class ChatAnswerer:
    """Asks a chat model with the language's prompt; repeats differ by their seed alone."""

    def __init__(
        self,
        endpoint: ModelEndpoint,
        prompts: Mapping[str, Prompt],
        refusals: Mapping[str, RefusalWords],
        *,
        seed: int,
        providers: Providers | None = None,
    ) -> None:
        """`prompts` and `refusals` hold every language of the run."""
        self._endpoint, self._prompts, self._refusals, self._seed = endpoint, prompts, refusals, seed
        self._model = ChatModel(endpoint, providers)

    @property
    def facts(self) -> ModelFacts:
        """What the manifest says of it."""
        return ModelFacts(
            kind="openai",
            model=self._endpoint.model,
            host=self._endpoint.host,
            path=self._endpoint.path,
            temperature=self._endpoint.temperature,
            seed=self._seed,
            prompts=facts_of({language: prompt.file for language, prompt in self._prompts.items()}),
        )

    async def answer(self, asked: Asked, *, repeat: int) -> Answer:
        """One call of the model."""
        refusal = self._refusals[asked.language]
        prompt = self._prompts[asked.language].fill(
            memories=context(asked),
            date=written(asked.date, asked.language),
            question=asked.text,
            refusal=refusal.sentence,
        )
        completion = await self._model.complete(prompt, seed=self._seed + repeat, use=f"{repeat}", spaces=asked.spaces)
        return Answer(
            text=completion.text,
            abstained=abstains(completion.text, refusal),
            input_tokens=completion.input_tokens,
            output_tokens=completion.output_tokens,
            estimated=completion.estimated,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._model.close()
