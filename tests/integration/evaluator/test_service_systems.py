"""Memory systems through the gateway that the server was started with: its key is the server's, never a caller's."""

import asyncio
from pathlib import Path

from support.evaluation import served_url, write_data
from support.evaluation_servers import EvaluationServer, Site
from support.gateways import gateway_over
from support.processes import free_port, run_command, wait_until
from support.toys import ToySystem


async def test_a_run_reaches_the_systems_that_the_key_allows(tmp_path: Path) -> None:
    site = Site(folder=tmp_path, results=str(tmp_path / "results"))
    write_data(site.data / "d.jsonl")
    narrow = site.key("ann", "--system", "one")
    toy = ToySystem()
    (tmp_path / "gateway").mkdir()
    async with served_url(toy, tmp_path / "toy") as url:
        systems = [{"name": name, "address": url} for name in ("one", "two")]
        async with gateway_over(tmp_path / "gateway", systems) as gateway:
            (tmp_path / "gateway.key").write_text(gateway.keys["all"])
            flags = ("--gateway", gateway.url("grpc"), "--gateway-key-file", str(tmp_path / "gateway.key"))
            with site.replicas("server", flags=flags, key=narrow) as (server,):
                await asyncio.to_thread(_look, server, gateway.keys["all"])
    assert not any(toy.kept.values()), "every space is given back"


def _look(server: EvaluationServer, gateway_key: str) -> None:
    assert server.ask("GET", "/v1/offer").json["systems"] == ["one"]
    plan = {"data": "d.jsonl", "system": "one", "k": [2, 5]}
    run = server.ended(server.start_run(plan))
    assert (run["state"], run["sentences"]) == ("completed", [])
    counts = {each["work"]: (each["done"], each["total"]) for each in run["progress"]}
    assert counts["turns processed"] == (16, 16)
    assert server.ask("POST", f"/v1/runs/{run['run_id']}/verify").json["agrees"]
    two = server.ask("POST", "/v1/runs", {**plan, "system": ["one", "two"]})
    assert (two.status, two.json["reason"]) == (403, "SYSTEM_FORBIDDEN")
    for path in ("manifest.json", "outcomes.jsonl", "report"):
        assert gateway_key.encode() not in server.ask("GET", f"/v1/runs/{run['run_id']}/{path}").body
    assert gateway_key not in server.process.log


async def test_a_run_that_is_removed_gives_back_what_it_has_stored(tmp_path: Path) -> None:
    site = Site(folder=tmp_path, results=str(tmp_path / "results"))
    data = write_data(site.data / "d.jsonl")
    toy = ToySystem()
    toy.read_delay_s = 3600.0  # stored, and never found
    (tmp_path / "gateway").mkdir()
    async with (
        served_url(toy, tmp_path / "toy") as url,
        gateway_over(tmp_path / "gateway", [{"name": "one", "address": url}]) as gateway,
    ):
        (tmp_path / "gateway.key").write_text(gateway.keys["all"])
        flags = ("--gateway", gateway.url("grpc"), "--gateway-key-file", str(tmp_path / "gateway.key"))
        with site.replicas("server", flags=flags) as (server,):
            path = await asyncio.to_thread(_cancel_in_the_middle, server, toy)
            assert any(toy.kept.values()), "a resume would go on with them"
            data.rename(tmp_path / "away")
            kept = await asyncio.to_thread(server.ask, "DELETE", path)
            assert (kept.status, "?leave_spaces=true" in kept.json["detail"]) == (409, True)
            (tmp_path / "away").rename(data)
            assert (await asyncio.to_thread(server.ask, "DELETE", path)).status == 204
            assert (await asyncio.to_thread(server.ask, "GET", path)).status == 404
    assert not any(toy.kept.values())


def _cancel_in_the_middle(server: EvaluationServer, toy: ToySystem) -> str:
    run_id = server.start_run({"data": "d.jsonl", "system": "one"})
    wait_until(lambda: len(toy.kept) == 2 and all(toy.kept.values()), 60, "both dialogues are stored")
    assert server.ask("POST", f"/v1/runs/{run_id}/cancel").status == 200
    assert server.ended(run_id)["state"] == "cancelled"
    return f"/v1/runs/{run_id}"


def test_an_engine_that_does_not_answer_stops_the_start(tmp_path: Path) -> None:
    """What is recorded where one answers is held in `tests/containers`."""
    address = f"tcp://127.0.0.1:{free_port()}"
    done = run_command("memdock-eval", "serve", "--results", tmp_path, "--insecure-dev", "--docker", address)
    assert done.code == 1
    assert f"--docker {address}: no engine answers there" in done.words
    assert "Traceback" not in done.words
