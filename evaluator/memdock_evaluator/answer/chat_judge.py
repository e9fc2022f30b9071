"""The judge that asks a chat model, with the prompt and the reply of its form: JSON, or POLLUX's own."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from memdock_evaluator.answer.endpoint import ModelEndpoint
from memdock_evaluator.answer.judge import ToJudge, Verdict, read_json, read_pollux
from memdock_evaluator.answer.models import ChatModel
from memdock_evaluator.answer.prompts import Prompt, Rubric, facts_of
from memdock_evaluator.answer.providers import Providers
from memdock_evaluator.results.plan import ModelFacts
from memdock_evaluator.words import counted, cut

JUDGE_FIELDS = frozenset({"question", "reference", "answer", "criterion", "scale"})
"""The placeholders of a judge's prompt."""

READERS: Mapping[str, Callable[[str], tuple[int | None, str]]] = {"json": read_json, "pollux": read_pollux}
"""How the reply of each form is read."""

_HEADING = re.compile(r"^(?=###)", re.MULTILINE)


class ChatJudge:
    """One call of the model a verdict, up to `tries` where its reply cannot be read, each with another seed."""

    def __init__(
        self,
        endpoint: ModelEndpoint,
        prompts: Mapping[str, Prompt],
        rubrics: Mapping[str, Rubric],
        *,
        form: str,
        seed: int,
        tries: int = 3,
        providers: Providers | None = None,
    ) -> None:
        """`prompts` and `rubrics` hold every language of the run; `form` is a key of `READERS`."""
        self._endpoint, self._prompts, self._rubrics, self._form, self._seed = endpoint, prompts, rubrics, form, seed
        self._tries = tries
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
            form=self._form,
            prompts=facts_of({language: prompt.file for language, prompt in self._prompts.items()}),
            rubrics=facts_of({language: rubric.file for language, rubric in self._rubrics.items()}),
        )

    async def judge(self, item: ToJudge, *, repeat: int) -> Verdict:
        """The verdict, with the tokens of all tries."""
        rubric = self._rubrics[item.language]
        prompt = self._prompts[item.language].fill(
            question=self._quoted(item.question),
            reference=self._quoted("\n".join(item.references)),
            answer=self._quoted(item.answer),
            criterion=rubric.criterion,
            scale=rubric.scale_lines,
        )
        verdict = Verdict(label=None)
        for attempt in range(self._tries):
            completion = await self._model.complete(
                prompt,
                seed=self._seed + repeat * self._tries + attempt,
                use=f"{self._form} {repeat} {attempt}",
                spaces=item.spaces,
                usable=lambda reply: READERS[self._form](reply)[0] is not None,
            )
            label, note = READERS[self._form](completion.text)
            verdict = replace(
                verdict,
                label=label,
                note=note if label is not None else f"{self._unreadable}; it was: {cut(completion.text)}",
                input_tokens=verdict.input_tokens + completion.input_tokens,
                output_tokens=verdict.output_tokens + completion.output_tokens,
                estimated=verdict.estimated or completion.estimated,
            )
            if label is not None:
                break
        return verdict

    @property
    def _unreadable(self) -> str:
        return f"the judge's reply held no verdict of the rubric, {counted(self._tries, 'time')}"

    def _quoted(self, text: str) -> str:
        """Set off by a space, a heading inside an answer opens no section of POLLUX's form."""
        return _HEADING.sub(" ", text) if self._form == "pollux" else text

    async def close(self) -> None:
        """Closes the connections."""
        await self._model.close()
