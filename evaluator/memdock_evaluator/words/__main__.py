"""`python -m memdock_evaluator.words`: texts that are new into every catalogue, those that are gone out of it."""

import sys

from memdock_evaluator.words.catalogue import update
from memdock_evaluator.words.language import LANGUAGES

waiting = [f"{language}: {text}" for language in list(LANGUAGES)[1:] for text in update(language)]
print("\n".join(waiting) or "every text has its translation")
sys.exit(bool(waiting))
