"""Texts that nobody wrote and that pack as badly as real ones: words of made-up languages, by Zipf's law.

Measured on pairs of turns of real dialogues, gzip takes 2.7 bits a character of English and 4.0 of Russian; it takes no
less of these (`tests/unit/evaluator/test_report_size.py` holds that).
"""

from collections.abc import Sequence
from itertools import accumulate
from random import Random

_SOUNDS = {
    "en": ("b c d f g h l m n p r s t v w th sh st tr br ch", "a e i o u ea ou ai", "- n r s t l d"),
    "ru": ("б в г д ж з к л м н п р с т х ц ч ш ст пр тр гр", "а е и о у ы я ю ё", "- сь й н л т к м"),
}
"""Heads, cores and tails of syllables; "-" is no tail."""

_WORDS = 6_000
_SYLLABLES = (1, 1, 2, 2, 2, 3, 3, 3, 4)


def texts(language: str, *, number: int, characters: int, seed: int = 0) -> list[str]:
    """Texts of about `characters` characters; the same for the same seed, and no two alike."""
    random = Random(f"{language} {seed}")
    vocabulary = _vocabulary(language)
    weights = list(accumulate((rank + 1.0) ** -1.15 for rank in range(len(vocabulary))))
    return [_text(random, vocabulary, weights, round(characters * random.uniform(0.5, 1.5))) for _ in range(number)]


def _vocabulary(language: str) -> list[str]:
    """Short words come first, for they are the frequent ones."""
    random = Random(language)
    words = dict.fromkeys(_word(random, language) for _ in range(_WORDS))
    return sorted(words, key=lambda word: len(word) + 3 * random.random())


def _word(random: Random, language: str) -> str:
    heads, cores, tails = (sounds.split() for sounds in _SOUNDS[language])
    stem = "".join(random.choice(heads) + random.choice(cores) for _ in range(random.choice(_SYLLABLES)))
    return stem + random.choice(tails).strip("-")


def _text(random: Random, vocabulary: Sequence[str], weights: Sequence[float], characters: int) -> str:
    sentences: list[str] = []
    length = 0
    while length < characters:
        words = random.choices(vocabulary, cum_weights=weights, k=random.randint(4, 16))
        sentences.append(" ".join(words).capitalize() + random.choice("....?!"))
        length += len(sentences[-1]) + 1
    return " ".join(sentences)[:characters]
