"""What a model answers to MemOS's extraction: its memories, or a failure."""

from typing import Any

from memdock.adapter.model_calls import json_object
from memdock.errors import error
from memdock_memos.framework.losses import lose

Record = dict[str, Any]

_USER = ("UserMemory", "用户记忆")


def read_extraction(reply: str) -> Record:
    """The reply in the form that MemOS stores without a loss. One without it is PROVIDER_PROTOCOL_ERROR.

    MemOS itself takes such a reply for "nothing to remember", or stores the dialogue as it is, and drops memories of a
    type that it does not know. Here those are LongTermMemory, as MemOS has it elsewhere.
    """
    found = json_object(reply) or {}
    memories = found.get("memory list")
    if not isinstance(memories, list) or not all(_is_memory(each) for each in memories):
        raise lose(error("PROVIDER_PROTOCOL_ERROR", "The model answered no list of memories, which it was asked for."))
    summary = found.get("summary")
    return {
        "memory list": [_memory(each) for each in memories],
        "summary": summary if isinstance(summary, str) else "",
    }


def _is_memory(value: Any) -> bool:
    text = value.get("value") if isinstance(value, dict) else None
    return isinstance(text, str) and bool(text.strip())


def _memory(found: Record) -> Record:
    key, tags, kind = found.get("key"), found.get("tags"), found.get("memory_type")
    return {
        "value": found["value"],
        "key": key if isinstance(key, str) else "",
        "tags": [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        "memory_type": "UserMemory" if kind in _USER else "LongTermMemory",
    }
