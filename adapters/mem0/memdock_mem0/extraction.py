"""What a model answers to mem0's extraction: its memories, or a failure."""

import json
from collections.abc import Callable
from typing import Any

from memdock.adapter.model_calls import json_object
from memdock.errors import error


def checked(ask: Callable[..., Any]) -> Callable[..., Any]:
    """mem0's `generate_response`, whose reply is a list of memories with a text each, or of none, and nothing else.

    mem0 itself takes any other JSON for "nothing to remember", and drops memories without a text. Here either is
    PROVIDER_PROTOCOL_ERROR.
    """

    def asked(*given: Any, **more: Any) -> Any:
        reply = ask(*given, **more)
        memories = (json_object(reply if isinstance(reply, str) else "") or {}).get("memory")
        if not isinstance(memories, list) or not all(_is_memory(each) for each in memories):
            raise error("PROVIDER_PROTOCOL_ERROR", "The model answered no list of memories, which it was asked for.")
        return json.dumps({"memory": memories})

    return asked


def _is_memory(value: Any) -> bool:
    text = value.get("text") if isinstance(value, dict) else None
    return isinstance(text, str) and bool(text.strip())
