"""A configuration that cannot be used, in a sentence."""

from pydantic import ValidationError


class ConfigError(Exception):
    """The message names the file and the field, and says what to do."""


def first_problem(error: ValidationError) -> str:
    """The first wrong field and what is wrong with it."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "the file"
    return f"{place}: {first['msg']}"
