"""A plan file stands for flags, goes behind what is typed, and is refused by file, line and field."""

import re
from asyncio import to_thread
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import Plan, Track
from support.evaluation import rows, served_url, write_data
from support.model_server import ModelServer, serve_models
from support.suites import behind_a_gateway
from support.toys import ToySystem


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["run", *(str(word) for word in words)])


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    write_data(tmp_path / "d.jsonl")
    path = tmp_path / "plan.yaml"
    path.write_text(
        f"data: [{tmp_path}/d.jsonl]\nbaseline: [oracle, refusal]\nk: [3, 5]\nrepeats: 2\n"
        f"trial: false\nout: {tmp_path}/runs\n"
    )
    return path


def plan_in(out: Path) -> Plan:
    return Manifest.from_json((out / "manifest.json").read_bytes(), place=str(out)).plan


async def test_several_systems_and_k_run_from_one_file(plan: Path, tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        plan.write_text(f"{plan.read_text()}url: {url}\nsystem: [toy]\n")
        done = await to_thread(run, "--plan", plan)
    assert done.exit_code == 0, done.output
    assert (plan_in(tmp_path / "runs").ks, plan_in(tmp_path / "runs").repeats) == ((3, 5), 2)
    assert {row.system for row in rows(tmp_path / "runs")} == {
        *("toy@3", "toy@5"),
        *("baseline:oracle", "baseline:refusal"),
    }


def test_an_estimate_is_of_each_k(plan: Path, tmp_path: Path) -> None:
    plan.write_text(f"{plan.read_text()}url: http://127.0.0.1:1\nsystem: [toy]\n")
    said = run("--plan", plan, "--estimate")
    assert said.exit_code == 0, said.output
    assert "16 questions of 2 dialogues" in said.output
    assert "toy: 8 AddTurns, 32 Retrieve" in said.output
    assert not (tmp_path / "runs").exists()


async def test_what_is_typed_goes_before_the_file(plan: Path, tmp_path: Path) -> None:
    typed = ("--k", 7, "--out", tmp_path / "typed", "--repeats", 1, "--baseline", "refusal", "--system", "toy")
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        done = await to_thread(run, "--plan", plan, "--url", url, *typed)
    assert done.exit_code == 0, done.output
    assert (plan_in(tmp_path / "typed").ks, plan_in(tmp_path / "typed").repeats) == ((7,), 1)
    assert {row.system for row in rows(tmp_path / "typed")} == {"toy", "baseline:refusal"}


def test_families_are_recorded_and_change_no_run(plan: Path, tmp_path: Path) -> None:
    plan.write_text(plan.read_text().replace("[3, 5]", "3") + 'family: ["one=baseline:oracle"]\n')
    assert run("--plan", plan).exit_code == 0
    out = tmp_path / "runs"
    assert orjson.loads((out / "manifest.json").read_bytes())["compared"]["families"] == [
        {"name": "one", "systems": ["baseline:oracle"]}
    ]
    outcomes = (out / "outcomes.jsonl").read_bytes()
    again = run("--plan", plan, "--family", "other=baseline:refusal")
    assert again.exit_code == 0, again.output
    assert "finished already" in again.output
    assert (out / "outcomes.jsonl").read_bytes() == outcomes
    told = orjson.loads((out / "statistics.json").read_bytes())
    assert told["families"] == [{"name": "other", "systems": ["baseline:refusal"]}]
    wrong = run("--plan", plan, "--out", tmp_path / "wrong", "--family", "x=rag")
    assert wrong.exit_code == 2
    assert "--family: there is no 'rag': the run has" in " ".join(wrong.output.split())
    assert not (tmp_path / "wrong").exists()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("data: [own]\nsytem: [a]\n", "plan.yaml, line 2: sytem: there is no such field; is system meant?"),
        ("data: [own]\n\nk: ten\n", "plan.yaml, line 3: k: 'ten' is not a valid integer range."),
        ("k: [5, 0]\n", "plan.yaml, line 1: k: 0 is not in the range 1<=x<=1000."),
        ("baseline: [oracle, oracel]\n", "plan.yaml, line 1: baseline: 'oracel' is not one of"),
        ("baseline:\n  - oracle\n  - oracel\n", "plan.yaml, line 3: baseline: 'oracel' is not one of"),
        ("k:\n- 5\n- many\n", "plan.yaml, line 3: k: 'many' is not a valid integer range."),
        ("family:\n  - a=x\n  - b\n", "plan.yaml, line 3: family: 'b'"),
        ("track: fair\n", "plan.yaml, line 1: track: 'fair' is not one of 'controlled', 'vendor'."),
        (
            "data: [own]\ncontext-tokens: none\n",
            "plan.yaml, line 2: context-tokens: 'none' is not a valid integer",
        ),
        ("repeats: [1, 2]\n", "plan.yaml, line 1: repeats: it takes one value, not a list"),
        ("k: 1\nk: 2\n", "plan.yaml, line 2: k: it stands there twice"),
        ("system:\n", "plan.yaml, line 1: system: give a value"),
        ("system: []\n", "plan.yaml, line 1: system: the list is empty"),
        ("system: {a: b}\n", "plan.yaml, line 1: system: give a value"),
        ("answer-key: sk-1\n", "line 1: answer-key: a key does not belong into a plan: give answer-key-file"),
        ("ingest-unit: heap\n", "line 1: ingest-unit: ingest unit 'heap': give pair, turn"),
        ("keep: maybe\n", "line 1: keep: 'maybe' is not a valid boolean"),
        ("[1, 2]\n", "plan.yaml: give fields and values"),
        ("k: 1\n  data: [\n", "it is no YAML"),
        ("? [a]\n: b\n", "line 1: a field's name is a word"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(written: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(written)
    refused = run("--plan", path, "--out", tmp_path / "run")
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.split())
    assert "sk-1" not in refused.output
    assert not (tmp_path / "run").exists()


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    refused = run("--plan", tmp_path / "none.yaml")
    assert refused.exit_code == 2
    assert "none.yaml: the plan cannot be read from it" in refused.output


def test_a_plan_whose_brackets_stand_too_deep(tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text("data: " + "[" * 20_000)
    refused = run("--plan", path, "--out", tmp_path / "run")
    assert (refused.exit_code, "too deep" in refused.output) == (2, True)


def test_progress_for_programs_is_json_on_standard_error(plan: Path, tmp_path: Path) -> None:
    done = run("--plan", plan, "--k", 3, "--out", tmp_path / "run", "--progress", "json")
    assert done.exit_code == 0, done.output
    lines = [orjson.loads(line) for line in done.stderr.splitlines()]
    assert lines[-1]["done"]["answers judged"] == [32, 32]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("track: controlled\n", "line 6: --track controlled gives every system the same budget"),
        ("judges: none.yaml\nsystem: [toy]\n", "line 6: --judges"),
        ("family: ['rag=rag']\n", "line 6: --family: there is no 'rag': the run has baseline:oracle"),
        ("atemporal: [mem0g]\n", "line 6: --atemporal: there is no 'mem0g'"),
        ("vendor-settings: [toy=toy.yaml]\n", "line 6: --vendor-settings toy=toy.yaml: no text can be read from it"),
    ],
)
def test_fields_that_do_not_go_together_are_told_with_a_line(written: str, said: str, plan: Path) -> None:
    lines = plan.read_text().replace("k: [3, 5]\n", "")
    plan.write_text(f"{lines}{written}")
    refused = run("--plan", plan)
    assert refused.exit_code == 2, refused.output
    assert said in " ".join(refused.output.split())


EXAMPLE = Path(__file__).parents[3] / "evaluator/README.md"


async def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    """As it stands but for its addresses and folders, on one dialogue."""
    (written,) = re.findall(r"```yaml\n(url: .*?)```", EXAMPLE.read_text(), re.DOTALL)
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",), languages=("ru", "en"))
    (tmp_path / "key.txt").write_text("none")
    (tmp_path / "answer.key").write_text("secret")
    server = ModelServer(chat=lambda _: '{"verdict": 2}')
    dense, hybrid = ToySystem(name="rag-dense"), ToySystem(name="rag-hybrid", chunk=2)
    async with (
        behind_a_gateway(tmp_path, ("rag-dense", dense), ("rag-hybrid", hybrid)) as reached,
        serve_models(server),
    ):
        judge = "{name: all, url: 'URL', model: judge}".replace("URL", server.url)
        (tmp_path / "judges.yaml").write_text(f"- {judge}\n")
        (tmp_path / "key.txt").write_text(str(reached["key"]))
        changes = {
            "grpc://127.0.0.1:7450": str(reached["url"]),
            "https://models.example/v1": server.url,
            "[own]": f"[{data}]",
            "key.txt": f"{tmp_path}/key.txt",
            "answer.key": f"{tmp_path}/answer.key",
            "judges.yaml": f"{tmp_path}/judges.yaml",
            "runs/plan": f"{tmp_path}/run",
        }
        for old, new in changes.items():
            assert old in written
            written = written.replace(old, new)
        (tmp_path / "plan.yaml").write_text(written)
        done = await to_thread(run, "--plan", tmp_path / "plan.yaml")
    assert done.exit_code == 0, done.output
    made = plan_in(tmp_path / "run")
    assert {each.track for each in made.systems if not each.baseline} == {Track.CONTROLLED}
    assert (made.ks, made.repeats, set(made.judges)) == ((5, 10), 3, {"all"})
    told = orjson.loads((tmp_path / "run/statistics.json").read_bytes())
    assert [family["name"] for family in told["families"]] == ["full context", "rag"]
    assert told["atemporal"] == ["rag-dense@10", "rag-dense@5"]
    assert len(rows(tmp_path / "run")) == 2 * 4 * 3 * 7


def test_a_plan_comes_on_standard_input(plan: Path, tmp_path: Path) -> None:
    words = ["run", "--plan", "-", "--k", "3", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(main, words, input=plan.read_text())
    assert done.exit_code == 0, done.output
    refused = CliRunner().invoke(main, words, input="k: ten")
    assert "standard input, line 1: k: 'ten' is not" in " ".join(refused.output.split())
