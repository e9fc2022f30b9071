"""Each adapter holds the protocol, but for what its `conformance.toml` says, with reasons."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.adapters import ROOT, Adapter, environment, to_service
from support.model_thread import in_thread
from support.processes import free_port, run_command

MODELS = "--chat-url {model_url} --chat-model m --embedder-url {model_url} --embedder-model e --embedder-dimension 256"


@contextmanager
def what_it_asks(adapter: Adapter) -> Iterator[tuple[str, list[str]]]:
    """The options of what the adapter asks, and the suite's: its model, or a service that asks the suite's model."""
    if adapter.service is None:
        yield MODELS, ["--responders", str(ROOT / "adapters" / adapter.home / "conformance-model.toml")]
        return
    service, at = adapter.service(), f"127.0.0.1:{free_port()}"
    service.model_url = f"http://{at}/v1"
    with in_thread(service.serving, adapter.name):
        given = {**to_service(service), "--processing-timeout": "30"}
        yield " ".join(word for pair in given.items() for word in pair), ["--model-listen", at]
    assert not service.refused, service.refused


@pytest.mark.slow
@pytest.mark.timeout(2500)
def test_it_keeps_what_the_protocol_promises(adapter: Adapter) -> None:
    folder = ROOT / "adapters" / adapter.home
    if not (folder / "conformance.toml").exists():
        pytest.skip(f"{adapter} has no conformance.toml")
    with what_it_asks(adapter) as (options, suite):
        serve = (
            f"{environment(adapter.home)}/memdock-{adapter.home} serve --data {{data}} --grpc 127.0.0.1:{{port}}"
            f" --http 127.0.0.1:{{http_port}} {options} {' '.join(adapter.flags)}"
        )
        done = run_command(
            "memdock-conformance",
            *("--launch", serve, "--timeout", "900", "--settle", "5", "--parallel", "4", *suite),
            *("--known-failures", str(folder / "conformance.toml")),
            timeout_s=2400,
        )
    assert done.code == 0, done.output + done.errors
