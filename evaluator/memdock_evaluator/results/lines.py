"""A record as a line of JSON."""

import orjson


def line_of(record: object) -> bytes:
    """A dataclass and all in it, keys sorted at every depth, without the line's end.

    orjson writes a dataclass's fields in their own order, but sorts what it has read: to write twice takes a tenth of
    the time of `dataclasses.asdict`.
    """
    return orjson.dumps(orjson.loads(orjson.dumps(record)), option=orjson.OPT_SORT_KEYS)
