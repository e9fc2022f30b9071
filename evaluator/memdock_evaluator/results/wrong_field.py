"""What is wrong with a record that cannot be read, in words: its first field that does not fit."""

from pydantic import ValidationError


def wrong_field(error: ValidationError, *, whole: str) -> str:
    """ "field: what is wrong"; `whole` stands for the field where it is the record as a whole."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(map(str, first["loc"])) or whole
    unknown = first["type"] in ("unexpected_keyword_argument", "extra_forbidden")
    return f"{field}: {'this version does not know that field' if unknown else first['msg']}"


def is_no_json(error: ValidationError) -> bool:
    """Whether it is not even JSON."""
    return error.errors(include_url=False, include_input=False, include_context=False)[0]["type"] == "json_invalid"
