"""What a run will ask and cost, from the sizes of its data alone: nothing is asked and nothing is written."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memdock_evaluator.answer.answerer import Asked, context
from memdock_evaluator.answer.endpoint import ModelSettings, NamedJudge
from memdock_evaluator.answer.opening import POLLUX
from memdock_evaluator.answer.prompts import TextFile, bundled, bundled_for_all, opened, refusal_words
from memdock_evaluator.answer.tokens import estimated_tokens
from memdock_evaluator.baselines import BASELINES
from memdock_evaluator.cost.bill import ANSWER, JUDGE, priced
from memdock_evaluator.cost.prices import Prices, read_prices
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.results.manifest import Cost, CostLine
from memdock_evaluator.run.answering import wall_clock
from memdock_evaluator.run.contestants import named
from memdock_evaluator.run.requests import groups
from memdock_evaluator.run.selection import Selection
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.words import counted

ANSWER_TOKENS = 60
"""Assumed of an answer; a model that reasons writes several times as much."""

VERDICT_TOKENS = 60
"""Assumed of a verdict with its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """`calls` of a model by system, purpose and model; `requests` of AddTurns and Retrieve by system."""

    questions: int
    dialogues: int
    calls: Mapping[tuple[str, str, str], int]
    requests: Mapping[str, tuple[int, int]]
    cost: Cost


@dataclass(slots=True)
class _Tally:
    calls: Counter[tuple[str, str, str]]
    inputs: Counter[tuple[str, str, str]]
    outputs: Counter[tuple[str, str, str]]

    def add(self, place: tuple[str, str, str], calls: int, input_tokens: int, output_tokens: int) -> None:
        self.calls[place] += calls
        self.inputs[place] += calls * input_tokens
        self.outputs[place] += calls * output_tokens


def estimate(settings: RunSettings) -> Estimate:
    """Reads the data once. A memory is taken to be as long as a pair of turns.

    Raises `SettingsError`, `DatasetError` or `PromptError`.
    """
    tally = _Tally(Counter(), Counter(), Counter())
    added: Counter[str] = Counter()
    retrieved: Counter[str] = Counter()
    questions = dialogues = 0
    ingests = settings.ingest_repeats
    for dialogue in Selection(settings).dialogues():
        asked = len(dialogue.questions) * settings.repeats
        if not asked:
            continue
        dialogues, questions = dialogues + 1, questions + asked
        requests = sum(1 for _ in groups(dialogue, settings.ingest_unit))
        for system in settings.systems:
            added[system] += requests * ingests
            retrieved[system] += asked * ingests * len(settings.ks)
            for k in settings.ks:
                name, memories = named(system, k, settings), _given_tokens(dialogue, k, settings.context_tokens)
                for question in dialogue.questions:
                    _ask(tally, settings, name, dialogue.language, question, memories, ingests)
        for name in settings.baselines:
            baseline = BASELINES[name]
            for question in dialogue.questions:
                shown = _shown_tokens(dialogue, question, name) if baseline.asks_model else None
                _ask(tally, settings, baseline.system, dialogue.language, question, shown)
    lines = [
        CostLine(
            system=place[0],
            purpose=place[1],
            model=place[2],
            input_tokens=tally.inputs[place],
            output_tokens=tally.outputs[place],
        )
        for place in sorted(tally.calls)
    ]
    prices: Prices = settings.prices or read_prices()
    return Estimate(
        questions=questions,
        dialogues=dialogues,
        calls=tally.calls,
        requests={name: (added[name], retrieved[name]) for name in settings.systems},
        cost=priced(lines, prices),
    )


def in_words(found: Estimate) -> Iterator[str]:
    """The estimate as lines, with what it leaves out."""
    yield f"{counted(found.questions, 'question')} of {counted(found.dialogues, 'dialogue')} for each system"
    for system, (added, retrieved) in found.requests.items():
        yield f"{system}: {added:,} AddTurns, {retrieved:,} Retrieve"
    for line in found.cost.lines:
        money = "no price" if line.money is None else f"{line.money:.4f} {found.cost.currency}"
        calls = found.calls[line.system, line.purpose, line.model]
        yield (
            f"{line.system}: {line.purpose} by {line.model}: {counted(calls, 'call')}, "
            f"{line.input_tokens:,} tokens in, {line.output_tokens:,} out, {money}"
        )
    yield f"about {found.cost.money:.4f} {found.cost.currency} by list prices of {found.cost.date}"
    if found.cost.unpriced:
        yield f"not in it, for the price table does not know them: {', '.join(found.cost.unpriced)} (--prices FILE)"
    left_out = ["the trial's small questions", "tries that are lost"]
    if found.requests:
        left_out.insert(0, "what the memory systems' own models cost, which only they know")
    yield f"not in it: {', '.join(left_out)}"
    yield (
        f"a token is taken as four bytes, an answer as {ANSWER_TOKENS} tokens, a verdict as {VERDICT_TOKENS}; "
        "models that reason write several times as much"
    )


def _ask(
    tally: _Tally,
    settings: RunSettings,
    system: str,
    language: str,
    question: Question,
    shown: int | None,
    ingests: int = 1,
) -> None:
    """One question; `shown` are the memories' tokens, `None` where no model answers."""
    said, answers = estimated_tokens(question.text), settings.repeats * ingests
    if shown is not None and settings.answerer.endpoint is not None:
        frame = estimated_tokens(_text(settings.answerer.prompt, language, bundled("answer", language, "txt")))
        place = system, ANSWER, settings.answerer.endpoint.model
        tally.add(place, answers, frame + shown + said, ANSWER_TOKENS)
    answered = ANSWER_TOKENS if shown is not None else estimated_tokens(refusal_words(language).sentence)
    for judge in _judges(settings, language):
        if judge.endpoint is not None:
            read = said + sum(map(estimated_tokens, question.references)) + answered
            place = system, JUDGE, judge.endpoint.model
            verdicts = answers * settings.judge_repeats
            tally.add(place, verdicts, _judge_tokens(judge, language) + read, VERDICT_TOKENS)


def _judges(settings: RunSettings, language: str) -> Sequence[ModelSettings]:
    judges: Sequence[NamedJudge] = [judge for judge in settings.judges if judge.serves(language)]
    return [judge.settings for judge in judges] if settings.judges else [settings.judge]


def _judge_tokens(judge: ModelSettings, language: str) -> int:
    prompt = bundled_for_all("judge.pollux.txt") if judge.form == POLLUX else bundled("judge", language, "txt")
    rubric = bundled("rubric", language, "yaml")
    texts = (_text(judge.prompt, language, prompt), _text(judge.rubric, language, rubric))
    return sum(map(estimated_tokens, texts))


def _text(given: str, language: str, otherwise: TextFile) -> str:
    return opened(Path(given.replace("{lang}", language))).text if given else otherwise.text


def _memory_tokens(dialogue: Dialogue) -> int:
    sizes = [estimated_tokens(turn.text) for turn in dialogue.turns]
    return 2 * sum(sizes) // max(1, len(sizes))


def _given_tokens(dialogue: Dialogue, k: int, budget: int | None) -> int:
    tokens = k * _memory_tokens(dialogue)
    return tokens if budget is None else min(tokens, budget)


def _shown_tokens(dialogue: Dialogue, question: Question, baseline: str) -> int:
    asked = Asked(
        text=question.text,
        date=question.date,
        language=dialogue.language,
        zone=wall_clock(dialogue),
        memories=BASELINES[baseline].memories(dialogue, question, lambda _: True),
    )
    return estimated_tokens(context(asked))
