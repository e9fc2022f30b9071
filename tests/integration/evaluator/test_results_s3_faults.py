"""A store that fails on the way: said clearly, nothing lost that was written, and the same command goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import s3fs
from click.testing import CliRunner, Result

from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.cli import main
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.run.settings import RunSettings
from support.evaluation import ran, settings, write_data
from support.model_server import ModelServer, serve_models
from support.s3 import BUCKET, S3, refusal, s3_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as s3:
        yield s3


@pytest.fixture
def s3(server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server; its client tries once, so that a test is quick."""
    for name, value in {**server.environment, "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    return server


@pytest.fixture
def runs(tmp_path: Path) -> str:
    return f"s3://{BUCKET}/{tmp_path.name}"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def shut(s3: S3) -> None:
    s3.gate.shut()


def say(answer: bytes) -> Callable[[S3], None]:
    def begin(s3: S3) -> None:
        s3.gate.answer = answer

    return begin


def mend(s3: S3) -> None:
    s3.gate.answer = None
    s3.gate.shut()
    s3.gate.open()


FAULTS = {
    "gone": (shut, r"Could not connect to the endpoint URL.*: once it answers again, the same command goes on"),
    "overloaded": (say(refusal("503 Slow Down", "SlowDown")), r"SlowDown.*: once it answers again, the same command"),
    "broken": (say(refusal("500 Internal Server Error", "InternalError")), r"InternalError.*: once it answers again"),
    "key": (
        say(refusal("403 Forbidden", "InvalidAccessKeyId")),
        r"InvalidAccessKeyId.*: check the credentials and what they allow",
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_store_that_fails_in_the_middle_costs_nothing_that_was_written(
    s3: S3, runs: str, tmp_path: Path, fault: str
) -> None:
    fail, words = FAULTS[fault]
    data = write_data(tmp_path / "d.jsonl", dialogues=("0", "1", "2"))
    async with serve_models(ModelServer()) as models:

        def fails_at_six(body: dict[str, Any]) -> str:
            if len(models.requests) == 6:
                fail(s3)
            return str(len(str(body["messages"])))

        models.chat = fails_at_six
        endpoint = ModelEndpoint(purpose="answer", url=models.url, model="m", tries=1, concurrency=1)

        def run(out: object) -> RunSettings:
            answerer = ModelSettings(endpoint=endpoint)
            return settings(data, str(out), baselines=("oracle",), concurrency=1, answerer=answerer)

        try:
            with pytest.raises(FolderError, match=words) as caught:
                await ran(run(f"{runs}/x"))
        finally:
            mend(s3)
        assert str(caught.value).startswith(f"{runs}/x/parts/")
        written = {path: s3.read(path) for path in s3.files.find(f"{runs}/x/parts")}
        assert len(written) == 3, "the first dialogue is done"
        # The lease could not be given back; its holder has ended, which no clock must tell.
        s3.files.rm_file(f"{runs}/x/.lease")
        end, _ = await ran(run(f"{runs}/x"))
        assert end.complete
        assert {path: s3.read(path) for path in written} == written
        await ran(run(tmp_path / "disk"))
        assert len(models.requests) <= 12 + 12 + 4, "but for those of the dialogue under way"
    assert s3.read(f"{runs}/x/outcomes.jsonl") == (tmp_path / "disk/outcomes.jsonl").read_bytes()


async def test_a_bucket_that_vanishes_is_named_and_the_run_begins_anew_in_its_place(s3: S3, tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), "s3://memdock-vanishing/x"
    s3.files.mkdir("memdock-vanishing")
    async with serve_models(ModelServer()) as models:

        def vanishes(body: dict[str, Any]) -> str:
            if len(models.requests) == 6:
                s3.files.rm("memdock-vanishing", recursive=True)
            return "Bublik"

        models.chat = vanishes
        endpoint = ModelEndpoint(purpose="answer", url=models.url, model="m", tries=1, concurrency=1)
        answerer = ModelSettings(endpoint=endpoint)
        run = settings(data, out, baselines=("oracle",), concurrency=1, answerer=answerer)
        with pytest.raises(FolderError, match=r"bucket does not exist\): make it, or correct the address"):
            await ran(run)
        with pytest.raises(FolderError, match=r"x/manifest\.json cannot be read .*: make it, or correct the address"):
            await ran(run)
        s3.files.mkdir("memdock-vanishing")
        end, _ = await ran(run)
    assert end.complete


def test_a_store_that_stumbles_is_asked_again(s3: S3, runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
    s3fs.S3FileSystem.clear_instance_cache()
    folder = Folder(f"{runs}/x")
    s3.gate.answer_once = [refusal("503 Slow Down", "SlowDown"), refusal("500 Internal Server Error", "InternalError")]
    folder.write("parts/a/rows-001.jsonl", b"1", once=True)
    assert not s3.gate.answer_once
    assert s3.read(f"{runs}/x/parts/a/rows-001.jsonl") == b"1"


def test_a_write_that_meets_another_one_is_tried_again(s3: S3, runs: str) -> None:
    """S3's 409 says that two conditional writes came at once, and not which of them was the first."""
    s3.gate.answer_once.extend([refusal("409 Conflict", "ConditionalRequestConflict")] * 2)
    folder = Folder(f"{runs}/x")
    assert folder.create("first", b"1")
    assert not s3.gate.answer_once
    assert not Folder(f"{runs}/x").create("first", b"2")
    assert s3.read(f"{runs}/x/first") == b"1"


def test_a_write_that_meets_others_for_ever_ends(s3: S3, runs: str) -> None:
    s3.gate.answer = refusal("409 Conflict", "ConditionalRequestConflict")
    try:
        with pytest.raises(FolderError, match="ConditionalRequestConflict"):
            Folder(f"{runs}/x").create("first", b"1")
    finally:
        s3.gate.answer = None


def test_a_store_without_conditional_writes_is_written_to_all_the_same(s3: S3, runs: str) -> None:
    s3.gate.answer_once = [refusal("501 Not Implemented", "NotImplemented")]
    Folder(f"{runs}/x").write("parts/a/rows-001.jsonl", b"1", once=True)
    s3.gate.answer_once = [refusal("501 Not Implemented", "NotImplemented")]
    with pytest.raises(FolderError, match="is there already: another process is writing to the folder"):
        Folder(f"{runs}/x").write("parts/a/rows-001.jsonl", b"2", once=True)
    assert s3.read(f"{runs}/x/parts/a/rows-001.jsonl") == b"1"


def test_every_command_says_where_it_cannot_read(
    s3: S3, runs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = tmp_path / "anna.csv"
    sheet.touch()
    s3.gate.shut()
    try:
        for words in (
            ("report", f"{runs}/x"),
            ("verify", f"{runs}/x"),
            ("show", f"{runs}/x", "q0"),
            ("compare", f"{runs}/x", f"{runs}/y"),
            ("merge", f"{runs}/z", f"{runs}/x"),
            ("label", "export", f"{runs}/x", "--out", tmp_path / "new.csv"),
            ("label", "import", f"{runs}/x", sheet),
            ("reanswer", f"{runs}/x", "--out", f"{runs}/y"),
            ("run", "--data", write_data(tmp_path / "d.jsonl"), "--baseline", "oracle", "--out", f"{runs}/x"),
        ):
            said = invoke(*words)
            assert said.exit_code == 1, (words, said.output)
            assert f"{runs}/" in said.output, words
            assert "once it answers again, the same command goes on" in " ".join(said.output.split()), words
            assert "Traceback" not in said.output
    finally:
        mend(s3)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    s3fs.S3FileSystem.clear_instance_cache()
    assert "check the credentials and what they allow" in invoke("report", f"{runs}/x").output
