"""Memory systems through the gateway that the server was started with: its key is the server's, never a caller's."""

import asyncio
from pathlib import Path

from support.evaluation import served_url, write_data
from support.evaluation_servers import EvaluationServer, Site
from support.gateways import gateway_over
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
