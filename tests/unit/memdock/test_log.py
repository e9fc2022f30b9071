"""What libraries log: as lines of our form, without their words, and never a flood."""

import logging
import time

import pytest
import structlog

from memdock.log import REPEATED_AFTER_S, set_up_logs
from support.logs import logged

LIBRARY = logging.getLogger("some.library")


def warn(fault: Exception | None = None) -> None:
    if fault is None:
        LIBRARY.warning("secret")
        return
    try:
        raise fault
    except type(fault):
        LIBRARY.warning("secret")


def test_a_warning_names_its_place_and_what_was_handled_there_and_none_of_its_words() -> None:
    with logged() as lines:
        warn()
        warn(KeyError("secret"))
        fault = ValueError("secret")
        fault.__context__ = LookupError("secret")
        LIBRARY.error("secret", exc_info=fault)
        found = lines()
    assert [line["problem"] for line in found] == ["", "KeyError", "LookupError"]
    assert all(line["place"].startswith("test_log.py:") for line in found)
    assert found[0]["place"].endswith(" warn")
    assert "secret" not in str(found)


def test_a_place_is_told_once_a_minute_with_the_number_of_those_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with logged() as lines:
        for _ in range(50):
            warn()
        warn(KeyError())
        now_s += REPEATED_AFTER_S - 1
        warn()
        now_s += 1
        warn()
        found = [(line["problem"], line["left_out"]) for line in lines()]
    assert found == [("", 0), ("KeyError", 0), ("", 50)]


def test_lines_that_cannot_be_written_stop_nothing() -> None:
    class Full:
        def write(self, line: bytes) -> None:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise ValueError("flush of closed file")

    with logged():
        set_up_logs(Full())
        structlog.get_logger().error("ledger_write_failed")
        warn()
