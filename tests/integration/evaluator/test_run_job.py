"""A run as a job of many indexes: the bytes of one run, whatever is killed and begun again."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.results.finalise import totals
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.lease import leased
from memdock_evaluator.run import job, merging
from memdock_evaluator.run.choice import Shard
from memdock_evaluator.run.merging import merge
from support.evaluation import ran, served_url, settings, write_data
from support.manifests import of_kind, rendered
from support.model_server import ModelServer, serve_models
from support.processes import clean_environment, command_path
from support.s3 import BUCKET, S3, s3_server
from support.toys import ToySystem

SIZE, DIALOGUES = 3, [f"d{number}" for number in range(8)]


def invoke(*words: object, **environment: str) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], env=environment)


def index(number: int, data: Path, out: Path | str, *words: object) -> Result:
    flags = ("--of", SIZE, "--data", data, "--out", out, "--baseline", "oracle", "--no-trial")
    return invoke("job", *flags, *words, JOB_COMPLETION_INDEX=str(number))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "d.jsonl", dialogues=DIALOGUES, languages=("en", "ru"))


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


def test_the_last_index_merges(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for number in (2, 0):
        done = index(number, data, out)
        assert done.exit_code == 0, done.output
        assert "of 3 shards are complete; the last one merges them" in done.output
        assert not (out / "manifest.json").exists()
    done = index(1, data, out)
    assert done.exit_code == 0, done.output
    assert f"all 3 shards are one run: {out}" in done.output
    whole = tmp_path / "whole"
    assert invoke("run", "--data", data, "--out", whole, "--baseline", "oracle", "--no-trial").exit_code == 0
    assert (out / "outcomes.jsonl").read_bytes() == (whole / "outcomes.jsonl").read_bytes()
    assert invoke("verify", out).exit_code == 0
    assert {path.name for path in (out / ".shards").iterdir()} == {"1-of-3", "2-of-3", "3-of-3"}
    (out / "report.ru.html").unlink()  # as if the merge had been killed just before its end
    assert index(0, data, out).exit_code == 0
    assert (out / "report.ru.html").exists()


def test_what_no_index_can_do_is_told(data: Path, tmp_path: Path) -> None:
    for words, said in (
        ((3,), "--index 3: of 3 indexes the last is 2"),
        ((0, "--shard", "1/3"), "--shard is for `memdock-eval run`, not for a job"),
        ((0, "--of", 9), "there are 8 dialogues, so give at most as many shards"),
        ((0, "--out", ""), "--out is missing"),
        ((0, "--out", "memory://x"), "is gone when the command ends"),
        (("x",), "'x' is not a valid integer"),
    ):
        number, *more = words
        refused = index(number, data, tmp_path / "run", *more)  # type: ignore[arg-type]
        assert refused.exit_code == 2, refused.output
        assert said in refused.output
    alone = invoke("job", "--of", 2, "--data", data, "--out", tmp_path / "run", "--baseline", "oracle")
    assert alone.exit_code == 2
    assert "--index is missing, and JOB_COMPLETION_INDEX is not set" in alone.output
    assert not (tmp_path / "run").exists()


def test_another_job_at_the_same_address_is_refused(data: Path, tmp_path: Path) -> None:
    for number in range(SIZE):
        assert index(number, data, tmp_path / "run").exit_code == 0
    other = index(0, data, tmp_path / "run", "--repeats", 2)
    assert other.exit_code == 2
    assert "repeats: then 1, now 2" in other.output
    fewer = index(0, data, tmp_path / "run", "--of", 2)
    assert fewer.exit_code == 2
    assert "holds another run than that of these 2 shards: give another --out" in fewer.output
    assert not (tmp_path / "run/.shards/1-of-2").exists(), "before anything is done"


def test_who_comes_second_to_the_merge_finds_it_done(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two looked before either merged: the second one neither fails nor makes another run of the same shards."""
    out = tmp_path / "run"
    for number in range(SIZE - 1):
        assert index(number, data, out).exit_code == 0
    whole = []

    def both(*given: Any) -> Any:
        whole.append(merge(*given))
        return merge(*given)

    monkeypatch.setattr(job, "merge", both)
    done = index(SIZE - 1, data, out)
    assert done.exit_code == 0, done.output
    assert orjson.loads((out / "manifest.json").read_bytes())["run_id"] == whole[0].run_id


def test_a_merge_that_was_out_of_reach_does_not_replace_another(
    s3: S3, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease was taken over while it worked, and it has not noticed yet."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    out = f"s3://{BUCKET}/{tmp_path.name}/late"
    for number in range(SIZE - 1):
        assert index(number, data, out).exit_code == 0

    shards = [("", Folder(job.folder_of(out, Shard(number=number, of=SIZE)))) for number in (1, 2, 3)]

    def late(*given: Any) -> Any:
        monkeypatch.setattr(merging, "totals", totals)
        s3.files.rm_file(f"{out}/.lease")
        merge(Folder(out), shards, ())
        return totals(*given)

    monkeypatch.setattr(merging, "totals", late)
    done = index(SIZE - 1, data, out)
    assert done.exit_code == 0, done.output
    assert orjson.loads(s3.read(f"{out}/manifest.json"))["command"] == [], "the other one's"


async def test_each_index_may_spend_its_share_of_the_budget(data: Path, tmp_path: Path) -> None:
    async with serve_models(ModelServer()) as server:
        server.chat = lambda body: "Bublik"
        words = ("--answer-url", server.url, "--answer-model", "gpt-4.1-mini", "--budget", 3e-6)
        ended = await asyncio.to_thread(index, 0, data, tmp_path / "run", *words)
    assert ended.exit_code == 4, ended.output
    assert "the budget of 1e-06 USD is spent" in ended.output


def test_two_that_end_at_once_leave_the_merge_to_one(
    s3: S3, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    out = f"s3://{BUCKET}/{tmp_path.name}/two"
    with leased(Folder(out)):  # another index that merges, and lives
        for number in range(SIZE):
            done = index(number, data, out)
            assert done.exit_code == 0, done.output
    assert f"another index merges the shards into {out}" in done.output
    assert not s3.files.exists(f"{out}/manifest.json")
    assert f"all 3 shards are one run: {out}" in index(2, data, out).output
    assert len(orjson.loads(s3.read(f"{out}/manifest.json"))["merged"]) == SIZE


def of_the_manifest(plan: Path, url: str, data: Path, out: str) -> list[str]:
    """The arguments of the container of `k8s/job`, with this test's plan in place of the mounted one."""
    documents = rendered("overlays/local")
    (job,) = of_kind(documents, "Job")
    assert job["spec"]["completions"] == SIZE
    (mounted,) = [each["data"]["plan.yaml"] for each in documents if "plan.yaml" in (each.get("data") or {})]
    fields = {**yaml.safe_load(mounted), "url": url, "system": ["toy"], "data": [str(data)]}
    del fields["key-file"]
    plan.write_text(yaml.safe_dump(fields))
    runs, _, name = out.rpartition("/")
    places = {"/plan/plan.yaml": str(plan), "$(RUNS)": runs, "$(JOB_NAME)": name}
    words: list[str] = job["spec"]["template"]["spec"]["containers"][0]["args"]
    for place, here in places.items():
        assert any(place in word for word in words)
        words = [word.replace(place, here) for word in words]
    return words


@asynccontextmanager
async def started(
    s3: S3, url: str, data: Path, out: str, number: int, log: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The process of an index, which does not outlive the block."""
    words = of_the_manifest(data.with_suffix(f".{number}.yaml"), url, data, out)
    environment = {**clean_environment(), **s3.environment, "JOB_COMPLETION_INDEX": str(number)}
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            command_path("memdock-eval"), *words, env=environment, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_killed_indexes_and_two_jobs_at_once_give_the_bytes_of_one_run(
    s3: S3, data: Path, tmp_path: Path
) -> None:
    """Each index is killed at its work; both jobs run beside each other, and each index twice at the same time."""
    jobs = [f"s3://{BUCKET}/{tmp_path.name}/{name}" for name in ("a", "b")]
    toy = ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        baselines = ("oracle", "refusal")
        end, _ = await ran(settings(data, tmp_path / "whole", url=url, systems=("toy",), baselines=baselines))
        assert end.complete

        def begun(out: str, number: int, log: Path) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
            return started(s3, url, data, out, number, log)

        async def of_index(out: str, number: int) -> None:
            log = tmp_path / f"{out.rpartition('/')[2]}-{number}.log"
            shard = f"{out}/.shards/{number + 1}-of-{SIZE}"
            async with begun(out, number, log) as process:
                async with asyncio.timeout(120.0):  # in a thread: this loop serves the system that the indexes wait for
                    while not await asyncio.to_thread(_has_parts, s3, shard):  # noqa: ASYNC110 - a test looks from outside
                        await asyncio.sleep(0.1)
                if process.returncode is None:
                    os.kill(process.pid, signal.SIGKILL)
            codes = [1]
            while 0 not in codes:  # of two that begin at once one is refused, and a Job begins it again
                async with (
                    started(s3, url, data, out, number, log) as one,
                    started(s3, url, data, out, number, log) as two,
                ):
                    codes = [await one.wait(), await two.wait()]
                    assert set(codes) <= {0, 1}, log.read_text()

        await asyncio.gather(*(of_index(out, number) for out in jobs for number in range(SIZE)))
    whole = (tmp_path / "whole/outcomes.jsonl").read_bytes()
    for out in jobs:
        assert s3.read(f"{out}/outcomes.jsonl") == whole
        assert s3.files.exists(f"{out}/report.ru.html")
    spaces = {space for kind, space, _ in toy.log if kind == "add"}
    assert len(spaces) == (1 + len(jobs)) * 2 * len(DIALOGUES), "a space of its own run for each dialogue and language"


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_kill_behind_any_upload_gives_the_bytes_of_one_run(s3: S3, tmp_path: Path) -> None:
    """Of the last index, from its first one to those of the merge and the report: each attempt gets twice as far."""
    data = write_data(tmp_path / "d.jsonl", dialogues=("d0", "d1", "d2"))
    out, log, toy = f"s3://{BUCKET}/{tmp_path.name}/kills", tmp_path / "log", ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(
            settings(data, tmp_path / "whole", url=url, systems=("toy",), baselines=("oracle", "refusal"))
        )
        assert end.complete
        before = len(toy.log)
        for number in range(SIZE - 1):
            async with started(s3, url, data, out, number, log) as process:
                assert await process.wait() == 0, log.read_text()
        uploads, code = 1, -signal.SIGKILL
        while code == -signal.SIGKILL:
            seen = len(s3.requests())
            async with started(s3, url, data, out, SIZE - 1, log) as process:
                ended = asyncio.create_task(process.wait())
                while s3.requests(seen).count("PUT") < uploads and not ended.done():
                    await asyncio.wait([ended], timeout=0.05)
                if not ended.done():
                    process.kill()
                code = await ended
            uploads *= 2
            for lease in (f"{out}/.lease", f"{out}/.shards/{SIZE}-of-{SIZE}/.lease"):
                if s3.files.exists(lease):  # its holder is dead, for which nobody needs to wait here
                    s3.files.rm_file(lease)
        assert code == 0, log.read_text()
    assert uploads >= 2**5, "kills on the way, and in the merge"
    assert s3.read(f"{out}/outcomes.jsonl") == (tmp_path / "whole/outcomes.jsonl").read_bytes()
    assert s3.files.exists(f"{out}/report.ru.html")
    stored = {space for kind, space, _ in toy.log[before:] if kind == "add"}
    assert len(stored) == 3, "a space of its own for each dialogue, also after kills"


def _has_parts(s3: S3, shard: str) -> bool:
    return any("/ingest-" in path for path in s3.files.find(f"{shard}/parts")) if s3.files.exists(shard) else False
