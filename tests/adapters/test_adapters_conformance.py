"""Each adapter holds the protocol, but for what its `conformance.toml` says, with reasons."""

import pytest

from support.adapters import ROOT, Adapter, environment
from support.processes import run_command


@pytest.mark.slow
@pytest.mark.timeout(2500)
def test_it_keeps_what_the_protocol_promises(adapter: Adapter) -> None:
    folder = ROOT / "adapters" / adapter.name
    if not (folder / "conformance.toml").exists():
        pytest.skip(f"{adapter} has no conformance.toml")
    serve = (
        f"{environment(adapter.name)}/memdock-{adapter.name} serve --data {{data}} --grpc 127.0.0.1:{{port}}"
        " --http 127.0.0.1:{http_port} --chat-url {model_url} --chat-model m --embedder-url {model_url}"
        " --embedder-model e --embedder-dimension 256"
    )
    done = run_command(
        "memdock-conformance",
        *("--launch", serve, "--timeout", "900", "--settle", "5", "--parallel", "4"),
        *("--responders", str(folder / "conformance-model.toml")),
        *("--known-failures", str(folder / "conformance.toml")),
        timeout_s=2400,
    )
    assert done.code == 0, done.output + done.errors
