"""The answerer and the judge that the settings name, with their prompts checked before anything runs."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from memdock_evaluator.answer.answerer import Answerer
from memdock_evaluator.answer.endpoint import ModelSettings
from memdock_evaluator.answer.judge import Judge
from memdock_evaluator.answer.offline import ExtractiveAnswerer, OverlapJudge
from memdock_evaluator.answer.prompts import (
    Prompt,
    RefusalWords,
    TextFile,
    bundled,
    bundled_for_all,
    check_pollux,
    opened,
    refusal_words,
    rubric,
)
from memdock_evaluator.answer.providers import Providers

POLLUX = "pollux"


def refusals(languages: Iterable[str]) -> Mapping[str, RefusalWords]:
    """The words of refusal of each language."""
    return {language: refusal_words(language) for language in languages}


def open_answerer(
    settings: ModelSettings, languages: Iterable[str], *, seed: int, providers: Providers | None = None
) -> Answerer:
    """Raises `PromptError`. Without an endpoint: the offline one. `providers`: what the models of a run share."""
    words = refusals(languages)
    if settings.endpoint is None:
        return ExtractiveAnswerer(words)
    from memdock_evaluator.answer.chat_answerer import ANSWER_FIELDS, ChatAnswerer

    files = _files(settings.prompt, words, lambda language: bundled("answer", language, "txt"))
    prompts = {language: Prompt(file=file, fields=ANSWER_FIELDS) for language, file in files.items()}
    own_seed = seed if settings.seed is None else settings.seed
    return ChatAnswerer(settings.endpoint, prompts, words, seed=own_seed, providers=providers)


def open_judge(
    settings: ModelSettings, languages: Iterable[str], *, seed: int, providers: Providers | None = None
) -> Judge:
    """Raises `PromptError`. Without an endpoint: the offline one."""
    words = refusals(languages)
    if settings.endpoint is None:
        return OverlapJudge(words)
    from memdock_evaluator.answer.chat_judge import JUDGE_FIELDS, ChatJudge

    files = _files(settings.prompt, words, lambda language: _judge_prompt(settings.form, language))
    if settings.form == POLLUX:
        for file in files.values():
            check_pollux(file)
    rubrics = _files(settings.rubric, words, lambda language: bundled("rubric", language, "yaml"))
    return ChatJudge(
        settings.endpoint,
        {language: Prompt(file=file, fields=JUDGE_FIELDS) for language, file in files.items()},
        {language: rubric(file) for language, file in rubrics.items()},
        form=settings.form,
        seed=seed if settings.seed is None else settings.seed,
        tries=settings.verdict_tries,
        providers=providers,
    )


def _judge_prompt(form: str, language: str) -> TextFile:
    return bundled_for_all("judge.pollux.txt") if form == POLLUX else bundled("judge", language, "txt")


def _files(given: str, languages: Iterable[str], otherwise: Callable[[str], TextFile]) -> Mapping[str, TextFile]:
    """The user's file of each language, or the bundled one."""
    return {
        language: opened(Path(given.replace("{lang}", language))) if given else otherwise(language)
        for language in languages
    }
