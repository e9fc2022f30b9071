"""A budget of context in whole memories, and the two tracks: what they ask for, check and show."""

from asyncio import to_thread
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.plan import Track
from memdock_evaluator.review.show import show
from memdock_evaluator.review.verify import verify
from support.evaluation import ran, rows, served_url, settings, write_data
from support.toys import ToySystem


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


async def test_a_budget_gives_whole_memories_best_first_and_measures_all(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",))
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        run = {"url": url, "systems": ("toy",), "ks": (3,), "baselines": ("full-context",)}
        await ran(settings(data, tmp_path / "all", **run))
        await ran(settings(data, tmp_path / "some", **run, context_tokens=20))
        await ran(settings(data, tmp_path / "none", **run, context_tokens=1))
    found = {name: {row.key: row for row in rows(tmp_path / name)} for name in ("all", "some", "none")}
    for key, row in found["all"].items():
        some, none = found["some"][key], found["none"][key]
        assert some.memories == none.memories == row.memories
        assert some.recall_turns == none.recall_turns == row.recall_turns
        if row.system == "toy":
            assert some.context_tokens <= 20
            assert (none.memories_given, none.context_tokens) == (0, 0)
            assert row.memories_given == len(row.memories)
        else:
            assert some.memories_given == none.memories_given == row.memories_given, "a baseline is a bound"
    cut = [row for row in found["some"].values() if row.system == "toy" and row.memories_given < len(row.memories)]
    assert cut, "some did not fit"
    assert all(row.memories_given for row in cut), "and some did"
    first = cut[0]
    lines = list(show(Folder(str(tmp_path / "some")), first.question_id, systems=["toy"]))
    assert f"  given      {first.memories_given} of {len(first.memories)} memories; the others did not fit" in lines
    assert sum(line.startswith("  no room") for line in lines) == len(first.memories) - first.memories_given
    write_report(tmp_path / "some")
    verify(Folder(str(tmp_path / "some")))


async def test_settings_of_a_vendor_stand_in_manifest_and_report(tmp_path: Path) -> None:
    data, file = write_data(tmp_path / "d.jsonl"), tmp_path / "toy.yaml"
    file.write_text("top_k: 30\nmax_tokens: 512\napi_key: ${TOY_KEY}\nnote: <b>bold</b>\n")
    words = ["--data", data, "--out", tmp_path / "run", "--system", "toy", "--track", "vendor"]
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        done = await to_thread(invoke, "run", *words, "--url", url, "--vendor-settings", f"toy={file}")
        assert done.exit_code == 0, done.output
        file.write_text("top_k: 40\n")
        other = await to_thread(invoke, "run", *words, "--url", url, "--vendor-settings", f"toy={file}")
    assert other.exit_code == 2
    assert "systems.toy.vendor_settings.text: then" in other.output
    page = (tmp_path / "run/report.html").read_text()
    assert "api_key: ${TOY_KEY}" in page
    assert "&lt;b&gt;bold" in page
    assert "answers, vendor track" in done.output


@pytest.mark.parametrize(
    "written",
    [
        "api_key: abcd1234",
        "top_k: 3\nOPENAI_API_KEY=abcd1234",
        '{"llm": {"apiKey": "abcd1234"}}',
        "auth_token: abcd",
        "password: 'hunter2'",
        "url: postgres://me:pw@host/db",
        "x: sk-abcdefghijklmnopqrst",
        "Authorization: Bearer abcdefghij",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_a_key_among_the_settings_is_refused_by_its_line(written: str, tmp_path: Path) -> None:
    data, file = write_data(tmp_path / "d.jsonl"), tmp_path / "toy.yaml"
    file.write_text(f"# as they recommend\n{written}\n")
    words = ["--data", data, "--out", tmp_path / "run", "--system", "toy", "--track", "vendor", "--url", "http://x"]
    refused = invoke("run", *words, "--vendor-settings", f"toy={file}")
    assert refused.exit_code == 2
    line = written.count("\n") + 2
    assert f"toy.yaml, line {line}: it looks like a key" in refused.output
    assert "abcd" not in refused.output.replace("abcd.yaml", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--track", "controlled"), "--track controlled gives every system the same budget of context"),
        (("--track", "vendor"), "give --vendor-settings toy=FILE"),
        (("--vendor-settings", "toy={file}"), "--vendor-settings belongs to --track vendor"),
        (("--track", "vendor", "--vendor-settings", "toy"), "write SYSTEM=FILE, such as mem0=mem0.yaml"),
        (("--track", "vendor", "--vendor-settings", "toy={file}.none"), "no text can be read from it"),
        (
            ("--track", "vendor", "--vendor-settings", "toy={file}", "--vendor-settings", "toy={file}"),
            "toy has its file already",
        ),
        (
            ("--track", "vendor", "--vendor-settings", "toy={file}", "--vendor-settings", "other={file}"),
            "other=...: it is no --system of this run",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    data, file = write_data(tmp_path / "d.jsonl"), tmp_path / "toy.yaml"
    file.write_text("top_k: 3\n")
    base = ["--data", data, "--out", tmp_path / "run", "--system", "toy", "--url", "http://127.0.0.1:1"]
    refused = invoke("run", *base, *(word.format(file=file) for word in words))
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.split())
    assert not (tmp_path / "run").exists()


async def test_a_controlled_run_tells_its_track(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl")
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        end, _ = await ran(
            settings(
                data,
                tmp_path / "run",
                url=url,
                systems=("toy",),
                track=Track.CONTROLLED,
                context_tokens=100,
                baselines=("oracle",),
            )
        )
    toy, oracle = end.manifest.plan.systems
    assert (toy.track, toy.context_tokens, oracle.track) == (Track.CONTROLLED, 100, None)
    assert write_report(tmp_path / "run")["systems"]["toy"]["track"] == "controlled"
