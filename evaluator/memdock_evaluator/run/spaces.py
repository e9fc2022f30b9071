"""The names of a run's own spaces; nothing else is ever reset."""

from memdock_evaluator.results.names import safe_name


def space_id(run_id: str, dialogue_id: str, language: str) -> str:
    """`eval-<run>-<dialogue>-<language>`: its own for each dialogue and language of each run."""
    return f"eval-{run_id}-{safe_name(dialogue_id)}-{safe_name(language)}"
