"""The front door of the package."""

import types

import memdock
from memdock import errors
from memdock import types as words


def test_the_front_door_is_what_it_says() -> None:
    public = {name for name, value in vars(memdock).items() if not name.startswith("_")}
    modules = {name for name in public if isinstance(getattr(memdock, name), types.ModuleType)}
    assert sorted(public - modules) == memdock.__all__ == sorted(set(memdock.__all__))


def test_every_error_and_every_answer_can_be_had_there() -> None:
    http_only = {"ContentTypeError", "VerbError"}
    raised = {kind.__name__ for kind in errors.REASONS.values()} - http_only
    for_servers = {"Query", "Selection", "Erasure"}
    given = {name for name, value in vars(words).items() if getattr(value, "__module__", "") == words.__name__}
    assert (raised | given) - for_servers - set(memdock.__all__) == set()
