"""`memdock-eval forgetting` and `leaks` against the whole stack: the reference memory forgets and keeps users apart."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.leaks.rows import Moment
from support.killing import kill
from support.processes import run_command
from support.suites import RestartByHand, lines, summary
from support.whole_stack import DENSE, HYBRID, WholeStack


def where(stack: WholeStack) -> list[str]:
    return ["--url", stack.grpc_url, "--key-file", str(stack.key_file), "--system", HYBRID, "--system", DENSE]


@contextmanager
def restarted(by_hand: RestartByHand, stack: WholeStack) -> Iterator[list[str]]:
    """Kills the adapter of the hybrid system and starts it again, once it is asked to; what was killed is noted."""
    killed: list[str] = []
    ended = threading.Event()

    def serve() -> None:
        if by_hand.wait(ended):
            kill(stack, "adapter")
            killed.append("adapter")
            by_hand.tell()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join(60)


@pytest.mark.slow
def test_the_reference_memory_forgets_and_takes_nothing_else(stack: WholeStack, tmp_path: Path) -> None:
    out = tmp_path / "forgetting"
    data = ["--data", "own", "--dialogue", "0", "--targets", "6"]
    done = run_command("memdock-eval", "forgetting", *where(stack), *data, "--out", out, timeout_s=110)
    assert done.code == 0, done.words
    for languages in summary(out)["systems"].values():
        for modes in (languages["ru"], languages["en"]):
            assert set(modes) == set(Mode)
            for found in modes.values():
                assert found["n_retrievable"] == found["n_targets"] == 6
                assert found["proof"] == "absent from ListMemories"
                assert found["left_deep"]["of"] > 0
                assert [found[key]["events"] for key in ("left_deep", "left_listed", "residue", "revived")] == [0] * 4
                assert found["left_words"]["of"] > 20
                assert {(claim["items"], claim["verified"]) for claim in found["claims"].values()} == {(0, True)}
                assert found["neighbours"]["taken"] == 0
    rows = lines(out, "neighbours.jsonl")
    assert len(rows) > 20
    assert not any(row["blame"] for row in rows)


@pytest.mark.slow
def test_the_reference_memory_keeps_twins_apart_through_a_kill(stack: WholeStack, tmp_path: Path) -> None:
    out, by_hand = tmp_path / "leaks", RestartByHand(tmp_path / "restart")
    with restarted(by_hand, stack) as killed:
        words = ["leaks", *where(stack), "--pairs", "2", "--restart-command", by_hand.line, "--out", str(out)]
        done = run_command("memdock-eval", *words, timeout_s=110)
    assert done.code == 0, done.words
    assert killed == ["adapter"]
    for moments in summary(out)["systems"].values():
        assert set(moments) == set(Moment)
        for found in moments.values():
            assert (found["leaks"]["events"], found["leaks"]["of"], found["taken"]) == (0, 48, 0)
