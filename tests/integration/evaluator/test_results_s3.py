"""A run's folder on S3: the whole way, the same bytes as on a disk, and one process at a time."""

import asyncio
import csv
import io
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import s3fs
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.results import lease
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.lease import leased
from support.evaluation import ran, served_url, settings, write_data
from support.model_server import ModelServer, serve_models
from support.processes import Finished, clean_environment, command_path, run_command
from support.s3 import BUCKET, S3, s3_server
from support.served import until
from support.toys import ToySystem


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as s3:
        yield s3


@pytest.fixture
def s3(server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server, reached as AWS's own variables say."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    return server


@pytest.fixture
def runs(tmp_path: Path) -> str:
    return f"s3://{BUCKET}/{tmp_path.name}"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def done(*words: object) -> str:
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    return result.output


def figures(summary: bytes) -> Any:
    """What is in a summary but for the run's id and its times."""
    found = orjson.loads(summary)
    del found["run_id"]
    for system in found["systems"].values():
        for language in system["languages"].values():
            del language["latency_ms"]
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_command_works_on_a_run_on_s3(s3: S3, runs: str, tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=("a", "b", "c"))
    flags = ("--data", data, "--baseline", "oracle", "--baseline", "full-context", "--no-trial")
    done("run", *flags, "--out", tmp_path / "disk")
    done("run", *flags, "--out", f"{runs}/whole")
    for name in ("outcomes.jsonl", "statistics.json", "tables/main.csv"):
        assert s3.read(f"{runs}/whole/{name}") == (tmp_path / "disk" / name).read_bytes(), name
    assert figures(s3.read(f"{runs}/whole/summary.json")) == figures((tmp_path / "disk/summary.json").read_bytes())
    assert s3.files.info(f"{runs}/whole/report.html")["ContentType"] == "text/html"
    assert not s3.files.exists(f"{runs}/whole/.lease")
    assert "is finished already" in done("run", *flags, "--out", f"{runs}/whole")
    before = s3.read(f"{runs}/whole/report.html")
    s3.files.rm_file(f"{runs}/whole/report.html")
    done("report", f"{runs}/whole")
    assert s3.read(f"{runs}/whole/report.html") == before
    assert "agree" in done("verify", f"{runs}/whole")
    assert "Bublik" in done("show", f"{runs}/whole", "a/q0")
    assert "the plans are the same" in done("compare", f"{runs}/whole", tmp_path / "disk")
    for number in (1, 2):
        done("run", *flags, "--shard", f"{number}/2", "--out", f"{runs}/shard-{number}")
    done("merge", f"{runs}/merged", f"{runs}/shard-1", f"{runs}/shard-2")
    assert s3.read(f"{runs}/merged/outcomes.jsonl") == s3.read(f"{runs}/whole/outcomes.jsonl")
    assert "agree" in done("verify", f"{runs}/merged")
    for command in ("reanswer", "rejudge"):
        done(command, f"{runs}/whole", "--out", f"{runs}/{command}")
        assert s3.read(f"{runs}/{command}/outcomes.jsonl") == s3.read(f"{runs}/whole/outcomes.jsonl")
    sheet = tmp_path / "anna.csv"
    done("label", "export", f"{runs}/whole", "--n", "3", "--out", sheet)
    rows = list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"))))
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "label": "2"} for row in rows)
    done("label", "import", f"{runs}/whole", sheet)
    assert orjson.loads(s3.read(f"{runs}/whole/labels.json"))["items"]
    assert "agree" in done("verify", f"{runs}/whole")


async def test_a_unit_costs_an_upload_a_part_and_nothing_is_read_back(
    s3: S3, runs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request takes tens of milliseconds there; a run of RUMBA has hundreds of units."""
    monkeypatch.setattr(lease, "BEAT_S", 600.0)  # how often a lease is renewed depends on the time alone
    counts = []
    for dialogues in (2, 12):
        data = write_data(tmp_path / f"{dialogues}.jsonl", dialogues=[str(n) for n in range(dialogues)])
        async with served_url(ToySystem(), tmp_path / f"toy-{dialogues}") as url:
            before = len(s3.requests())
            out = f"{runs}/{dialogues}"
            end, _ = await ran(settings(data, out, url=url, systems=("toy",)))
            assert end.complete
            counts.append(Counter(s3.requests(before)))
            before = len(s3.requests())
            await ran(settings(data, out, url=url, systems=("toy",)))
            counts.append(Counter(s3.requests(before)))
    small, small_again, large, large_again = counts
    units = 12 - 2  # each: ingest, retrieve, answer, judge, rows, and close before and behind its Reset
    assert {method: large[method] - small[method] for method in large} == {"PUT": 7 * units} | {
        method: 0 for method in large if method != "PUT"
    }
    more = {method: large_again[method] - small_again[method] for method in large_again}
    assert more == {"GET": 7 * units} | {method: 0 for method in large_again if method != "GET"}


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_run_on_s3_that_is_killed_goes_on_to_the_bytes_of_a_disk(s3: S3, runs: str, tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=[str(n) for n in range(6)])
    toy = ToySystem()

    async with (
        serve_models(ModelServer(chat=lambda body: str(len(str(body["messages"]))), latency_s=0.05)) as models,
        served_url(toy, tmp_path / "toy") as url,
    ):

        def words(out: object) -> list[str]:
            flags = ["--data", data, "--out", out, "--url", url, "--system", "toy", "--concurrency", 2]
            return list(map(str, ["run", *flags, "--answer-url", models.url, "--answer-model", "m", "--no-trial"]))

        async def command(*given: object) -> Finished:
            arguments = map(str, given)
            return await asyncio.to_thread(
                run_command, "memdock-eval", *arguments, environment=s3.environment, timeout_s=200.0
            )

        out = f"{runs}/killed"
        process = await asyncio.create_subprocess_exec(
            command_path("memdock-eval"), *words(out), env=clean_environment(s3.environment), stderr=-3
        )
        await until(lambda: len(models.requests) >= 10, within_s=60.0)
        models.latency_s = 600.0
        refused = await command(*words(out))
        assert refused.code == 1
        assert f"another run is writing to {out} (process {process.pid} on " in refused.words
        process.send_signal(signal.SIGKILL)
        await process.wait()
        models.latency_s = 0.0
        assert not s3.files.exists(f"{out}/outcomes.jsonl")
        again = await command(*words(out))
        assert again.code == 0, again.words
        assert f"{out} is held by process {process.pid} on " in again.words
        straight = await command(*words(tmp_path / "disk"))
        assert straight.code == 0, straight.words
    assert s3.read(f"{out}/outcomes.jsonl") == (tmp_path / "disk/outcomes.jsonl").read_bytes()
    assert figures(s3.read(f"{out}/summary.json")) == figures((tmp_path / "disk/summary.json").read_bytes())
    assert toy.kept == {}


def test_one_process_at_a_time_and_a_dead_ones_lease_is_taken_over(
    s3: S3, runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "BEAT_S", 0.1)
    monkeypatch.setattr(lease, "DEAD_S", 0.5)
    first, second = Folder(f"{runs}/x"), Folder(f"{runs}/x")
    said: list[str] = []
    with leased(first):
        with pytest.raises(FolderError, match=rf"another run is writing to .* \(process {os.getpid()} on "):
            second_held(second)
        dead = s3.read(f"{runs}/x/.lease")
    assert not s3.files.exists(f"{runs}/x/.lease")
    s3.files.pipe_file(f"{runs}/x/.lease", dead)
    with leased(second, said.append):
        assert "waiting 0.5 s to see whether that still runs" in said[0]
        second.write("manifest.json", b"mine")
    assert s3.read(f"{runs}/x/manifest.json") == b"mine"


def test_a_lease_that_is_given_back_is_taken_at_once(s3: S3, runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever waits to see whether its holder lives: one that was evicted ends in order."""
    monkeypatch.setattr(lease, "BEAT_S", 0.1)
    monkeypatch.setattr(lease, "DEAD_S", 60.0)
    files = s3.files
    files.pipe_file(f"{runs}/x/.lease", b'{"process": 7, "host": "elsewhere", "token": "other"}')
    with leased(Folder(f"{runs}/x"), lambda _: files.rm_file(f"{runs}/x/.lease")):
        assert b"elsewhere" not in s3.read(f"{runs}/x/.lease")


def second_held(folder: Folder) -> None:
    with leased(folder):
        raise AssertionError("two hold it")


def test_who_lost_the_folder_writes_nothing_more(s3: S3, runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT_S", 0.05)
    folder = Folder(f"{runs}/x")

    said: list[str] = []

    with leased(folder):

        def lost() -> bool:
            # The other one lives and renews its lease, too: a beat that had just looked may still overwrite it once.
            s3.files.pipe_file(f"{runs}/x/.lease", b'{"process": 7, "host": "elsewhere", "token": "other"}')
            try:
                folder.write("part", b"1")
            except FolderError as error:
                said.append(str(error))
            return bool(said)

        asyncio.run(until(lost, within_s=20.0))
    assert "was taken over by process 7 on elsewhere" in said[0]
    assert b"elsewhere" in s3.read(f"{runs}/x/.lease"), "the other one's lease is left"


def test_a_part_that_another_process_wrote_is_never_replaced(s3: S3, runs: str) -> None:
    folder = Folder(f"{runs}/x")
    folder.write("parts/a/rows-001.jsonl", b"one", once=True)
    Folder(f"{runs}/x").write("parts/a/rows-001.jsonl", b"one", once=True)
    with pytest.raises(FolderError, match=r"rows-001\.jsonl is there already: another process is writing"):
        Folder(f"{runs}/x").write("parts/a/rows-001.jsonl", b"two", once=True)
    assert s3.read(f"{runs}/x/parts/a/rows-001.jsonl") == b"one"
