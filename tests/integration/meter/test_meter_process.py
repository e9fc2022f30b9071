"""The meter as a process: ready, killed, started again, asked by its own command."""

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from support.meters import write_config
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import Daemon, clean_environment, command_path, free_port, run_command, wait_until


@contextmanager
def meter_process(config: Path) -> Iterator[Daemon]:
    listen = f"127.0.0.1:{free_port()}"
    daemon = Daemon("meter", "memdock-meter", ["serve", "--config", config, "--listen", listen], config.parent)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.kill()


def embed(daemon: Daemon, text: str) -> Any:
    url = f"http://127.0.0.1:{daemon.ports()['http']}/s/a/t/one/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        return client.embeddings.create(model="m", input=text)


def used(config: Path) -> dict[str, Any]:
    done = run_command("memdock-meter", "usage", "--config", config, "--space", "one")
    assert done.code == 0, done.words
    line: dict[str, Any] = json.loads(done.output)
    return line


def test_what_was_used_survives_a_kill_and_the_command_tells_it(tmp_path: Path) -> None:
    with models_in_thread(ModelServer()) as models:
        config = write_config(tmp_path, models.url, mode="record")
        with meter_process(config) as daemon:
            embed(daemon, "abcd")
            assert used(config)["input_tokens"] == 4
            daemon.kill()
            daemon.start()
            embed(daemon, "abcd")
            embed(daemon, "ef")
            line = used(config)
            assert (line["calls"], line["replayed"], line["requests"], line["input_tokens"]) == (3, 1, 2, 6)
            done = run_command("memdock-meter", "purge", "--config", config, "--system", "a", "--space", "one")
            assert "erased 2 recordings of a, space one" in done.words
            embed(daemon, "abcd")
            assert used(config)["requests"] == 3
            assert daemon.stop() == 0
            assert "abcd" not in daemon.log


def test_a_misspelt_name_is_no_usage_of_nothing(tmp_path: Path) -> None:
    with models_in_thread(ModelServer()) as models:
        config = write_config(tmp_path, models.url)
        for words in (["usage"], ["purge", "--system", "a", "--space", "one"]):
            done = run_command("memdock-meter", *words, "--config", config)
            assert done.code == 1
            assert f"there is no store {tmp_path / 'meter.sqlite'} yet" in done.words
            assert not (tmp_path / "meter.sqlite").exists()
        with meter_process(config):
            done = run_command("memdock-meter", "usage", "--config", config, "--system", "aa")
            assert done.code == 1
            assert "there is no system aa, known are a" in done.words
            done = run_command("memdock-meter", "usage", "--config", config, "--system", "a")
            assert (done.code, done.output, done.errors) == (0, "", "no calls are counted there\n")


def test_a_second_meter_on_one_store_is_refused_and_commands_are_not(tmp_path: Path) -> None:
    with models_in_thread(ModelServer()) as models:
        config = write_config(tmp_path, models.url)
        with meter_process(config) as daemon:
            refused = run_command("memdock-meter", "serve", "--config", config, "--listen", "127.0.0.1:0")
            assert refused.code == 1
            told = f"Error: the store {tmp_path / 'meter.sqlite'} is in use by the meter of process"
            assert re.fullmatch(rf"{re.escape(told)} \d+: stop that one, or name another store", refused.errors.strip())
            embed(daemon, "abcd")
            assert used(config)["calls"] == 1
            daemon.kill()
            daemon.start()  # what a killed one held is free


@pytest.mark.parametrize("command", ["memdock-meter", "memdock-embedder"])
def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path, command: str) -> None:
    port_file = tmp_path / "ports.json"
    flags = ["--config", str(write_config(tmp_path, "http://127.0.0.1:9/v1"))] if command == "memdock-meter" else []
    words = [command_path(command), "serve", *flags, "--listen", "127.0.0.1:0", "--port-file", str(port_file)]
    with Path("/dev/full").open("wb") as full:
        process = subprocess.Popen(words, stderr=full, env=clean_environment())
    try:
        wait_until(lambda: port_file.exists() or process.poll() is not None, 60, "it serves")
        assert process.poll() is None
        root = f"http://127.0.0.1:{json.loads(port_file.read_text())['http']}"
        path = "/s/a/v1/embeddings" if command == "memdock-meter" else "/v1/embeddings"
        for _ in range(2):  # a call that fails is logged, too
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{root}{path}", data=b"{", timeout=30)
            refused.value.close()
            assert refused.value.code == 400
        with urllib.request.urlopen(f"{root}/livez", timeout=30) as alive:
            assert alive.status == 200
    finally:
        process.terminate()
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("upstreams: [", "it is no YAML"),
        ("{}", "upstreams: Field required"),
        ("- a", "it must be a mapping"),
        (None, "it cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_a_sentence(tmp_path: Path, file: str | None, said: str) -> None:
    config = tmp_path / "meter.yaml"
    if file is not None:
        config.write_text(file)
    done = run_command("memdock-meter", "serve", "--config", config)
    assert done.code == 1
    assert f"{config}: {said}" in done.words
    assert "Traceback" not in done.words


def test_equal_keys_end_the_start_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "one.key").write_text("secret-7731")
    system = {"chat": "models", "key_file": "one.key"}
    config = write_config(tmp_path, "http://x", systems={"a": system, "b": system})
    done = run_command("memdock-meter", "serve", "--config", config)
    assert done.code == 1
    assert "systems.a and systems.b have the same key" in done.words
    assert "Traceback" not in done.words
    assert "secret-7731" not in done.words


def test_a_misspelt_variable_is_refused(tmp_path: Path) -> None:
    done = run_command("memdock-meter", "serve", environment={"MEMDOCK_METER_CONFG": "x"})
    assert done.code == 1
    assert "unknown variable MEMDOCK_METER_CONFG" in done.words
