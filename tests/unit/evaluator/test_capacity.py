"""`memdock-eval capacity`: times that can be reckoned by hand, what ends first, and how it grows."""

import inspect
import re
import subprocess
from dataclasses import fields, replace
from math import floor, log10
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from memdock_evaluator.capacity.command import HELP, duration
from memdock_evaluator.capacity.shape import Platform, Prediction, Workload
from memdock_evaluator.capacity.simulation import predict
from memdock_evaluator.cli import main
from memdock_evaluator.results.lease import BEAT_S
from memdock_evaluator.results.manifest import Price
from memdock_evaluator.run.settings import RunSettings
from memdock_pgvector.database import Database
from support.processes import clean_environment, command_path

PRICE = Price(input=1.0, output=10.0)
NOTHING = Platform(
    add_s=0, embed_s=0, embed_query_s=0, store_s=0, search_s=0, call_s=0, call_spread=0, evaluator_s=0, upload_s=0,
    uploads_per_second=0, connections=0,
)  # fmt: skip
SMALL = Workload(dialogues=8, requests=10, questions=4)


def predicted(work: Workload = SMALL, **changes: Any) -> Prediction:
    return predict(work, replace(NOTHING, **changes), PRICE)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        # Eight dialogues, four at once, ten requests of a second each.
        ({"add_s": 1.0}, 20.0),
        # 80 requests embedded by one core, a second each; by two; by half of one.
        ({"embed_s": 1.0, "embedder_cores": 1}, 80.0),
        ({"embed_s": 1.0, "embedder_cores": 2}, 40.0),
        ({"embed_s": 1.0, "embedder_cores": 0.5}, 160.0),
        ({"store_s": 0.5, "database_cores": 1}, 40.0),
        # 32 questions, answered and judged, one call at a time.
        ({"call_s": 1.0, "provider_calls": 1}, 64.0),
        # With places for all: two rounds of dialogues, two calls after each other.
        ({"call_s": 1.0, "provider_calls": 1000}, 4.0),
        # 64 calls at 60 a minute.
        ({"provider_calls_per_minute": 60}, 64.0),
        ({"evaluator_s": 1.0}, 32.0),
        ({"evaluator_s": 1.0, "indexes": 2, "dialogues_at_once": 2}, 16.0),
        # 7 uploads of each dialogue, behind each other.
        ({"upload_s": 1.0}, 14.0),
        # The index writes its lease each second, too.
        ({"uploads_per_second": 2, "lease_s": 1}, 56.0),
    ],
)
def test_one_resource_alone_takes_what_can_be_reckoned(changes: dict[str, Any], seconds: float) -> None:
    assert predicted(**changes).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"embed_s": 1.0}, "embedder"),
        ({"store_s": 1.0}, "database"),
        ({"call_s": 1.0, "provider_calls": 2}, "provider's calls at once"),
        ({"call_s": 1.0, "provider_calls_per_minute": 60}, "provider's calls a minute"),
        ({"evaluator_s": 1.0}, "evaluator's core"),
        ({"uploads_per_second": 2, "lease_s": 1}, "results"),
        ({"call_s": 1.0, "provider_calls": 1000}, "dialogues at once"),
    ],
)
def test_what_ends_first_is_named(changes: dict[str, Any], limit: str) -> None:
    found = predicted(replace(SMALL, dialogues=64), **changes)
    assert found.limit == limit
    assert all(0 <= used <= 1 + 1e-9 for used in found.used.values())


def test_a_call_never_waits_for_less_than_the_time_of_all_of_them() -> None:
    """Little's law: what is on its way is the pace times the way."""
    work = replace(SMALL, dialogues=400)
    found = predicted(work, call_s=1.0, call_spread=0.5, provider_calls=3)
    assert found.seconds == pytest.approx(2 * 400 * 4 / 3, rel=0.05)
    assert found.dialogue_s * 400 / found.seconds == pytest.approx(4, rel=0.05)


def test_more_than_is_simulated_follows_at_its_pace() -> None:
    """Simulated in part, and in whole by a bound above it, gives the same; a thousand times as much takes as long."""
    some = predicted(replace(SMALL, dialogues=100_000), call_s=1.0, provider_calls=4)
    assert some.simulated < 1000
    assert some.seconds == pytest.approx(2 * 100_000 * 4 / 4, rel=0.02)
    wide = predicted(
        Workload(systems=1000, data_sets=10, dialogues=100, requests=10, questions=4),
        call_s=1.0,
        systems_at_once=500,
        indexes=4,
        provider_calls=400,
    )
    assert wide.seconds == pytest.approx(2 * 1_000_000 * 4 / 400, rel=0.05)


def test_connections_bound_the_systems_at_once() -> None:
    found = predicted(SMALL, systems_at_once=10, connections=100, connections_per_system=30, call_s=1.0)
    assert found.systems_at_once == 3
    assert predicted(SMALL, systems_at_once=10, connections=10, connections_per_system=30).systems_at_once == 1


def test_leases_alone_may_be_too_many() -> None:
    with pytest.raises(
        ValueError, match="the leases of 30 indexes are 10 writes a second, and the results' store takes 10"
    ):
        predicted(SMALL, systems_at_once=10, indexes=3, uploads_per_second=10)


def test_money_is_of_tokens_and_of_cores() -> None:
    found = predicted(replace(SMALL, answer_tokens=(1000, 10), judge_tokens=(100, 20)), add_s=450.0, core_hour=2.0)
    assert found.calls == 64
    assert found.models == pytest.approx(32 * (1100 * 1.0 + 30 * 10.0) / 1e6)
    assert found.seconds == pytest.approx(9000)
    assert found.machines == pytest.approx(2.5 * 2.0 * (1 + 0.25 + NOTHING.embedder_cores + NOTHING.database_cores))


def test_the_same_seed_gives_the_same() -> None:
    first, again, other = (predict(SMALL, Platform(), PRICE, seed=seed) for seed in (3, 3, 4))
    assert first == again != other


def test_the_command_tells_all_of_it() -> None:
    assert HELP.keys() == {field.name for shape in (Workload, Platform) for field in fields(shape)}
    said = CliRunner().invoke(main, ["capacity", "--dialogues", "10", "--systems-at-once", "40"])
    assert said.exit_code == 0, said.output
    assert "1 systems on 1 data sets: 180 questions, 360 calls" in said.output
    assert "of 40 systems at once 5 get their connections: 100, at 17 each" in said.output
    assert "what ends first: embedder" in said.output
    asked = CliRunner().invoke(main, ["capacity", "--dialogues", "10", "--answer-tokens", "1", "2", "--json"])
    assert orjson.loads(asked.stdout)["calls"] == 360
    for words in (["--model", "nobody"], ["--embedder-cores", "0"], ["--systems", "0"], ["--call-s", "nan"]):
        assert CliRunner().invoke(main, ["capacity", *words]).exit_code == 2, words


def test_times_are_told_in_their_size() -> None:
    assert [duration(each) for each in (5, 600, 9000, 864000)] == [
        "5.0 seconds",
        "10.0 minutes",
        "2.5 hours",
        "10.0 days",
    ]


def test_what_the_programs_do_by_default_is_what_is_simulated() -> None:
    assert Platform().lease_s == BEAT_S
    assert Platform().dialogues_at_once == RunSettings.__dataclass_fields__["concurrency"].default
    assert Platform().parallel_questions == RunSettings.__dataclass_fields__["parallel_questions"].default
    pool = inspect.signature(Database.__init__).parameters["max_connections"].default
    assert Platform().connections_per_system == pool + 1, "and the one that holds the schema"


README = Path(__file__).parents[3] / "k8s/README.md"


@pytest.mark.slow
def test_the_readmes_table_is_what_its_commands_say(tmp_path: Path) -> None:
    """Time, money of models and of machines, what ends first; of the last, that it is refused."""
    text = README.read_text()
    rows = [line.strip("|").split("|") for line in text.splitlines() if re.match(r"\| .*(days|hours|refused)", line)]
    found = re.search(r"<!-- capacity -->\n```sh\n(.*?)```", text, re.DOTALL)
    assert found
    script = found[1].replace("memdock-eval capacity", "again")
    # A function that tells each command's end, for the last is to fail.
    begin = 'again() { "$MEMDOCK_EVAL" capacity "$@" || true; echo ----; }\n'
    environment = {**clean_environment(), "MEMDOCK_EVAL": str(command_path("memdock-eval"))}
    done = subprocess.run(
        ["sh", "-eu", "-c", begin + script], capture_output=True, text=True, env=environment, check=True, cwd=tmp_path
    )
    told = done.stdout.split("----\n")[:-1]
    assert len(told) == len(rows) == 8
    for (what, time, models, machines, first), said in zip(rows[:-1], told[:-1], strict=True):
        assert f"\n{time.strip()};" in said, what
        money = re.search(r"models ([0-9.,]+) USD, machines ([0-9.,]+) ", said)
        assert money
        assert (models.strip(), machines.strip()) == (rounded(money[1]), rounded(money[2])), what
        limit = re.search(r"what ends first: (.*)", said)
        named = re.search(r"\*\*(?:the )?(.*?)\*\*", first)
        assert limit
        assert named
        assert limit[1] == named[1], what
        for percent in re.findall(r"(\d+ %)", first):
            assert f": {percent} of its time" in said, what
    assert not told[-1]
    assert "10,540 leases" in rows[-1][4]
    assert "the leases of 10,540 indexes are" in done.stderr


def rounded(money: str) -> str:
    """To two digits, as the table has it."""
    value = float(money.replace(",", ""))
    digits = 1 - floor(log10(value))
    return f"${round(value, digits):,.{max(0, digits)}f}"
