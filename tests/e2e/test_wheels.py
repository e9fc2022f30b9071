"""Wheels of every distribution, installed beside their pinned dependencies and nothing else, in a new environment."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTS = ("proto", "services/embedder", "services/meter", "gateway", "adapters/pgvector", "evaluator")
MAX_INSTALL_MB = 500
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("MEMDOCK_", "PYTHON"))}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, env=PLAIN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with the wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    for dist in DISTS:
        run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder / "dist", dist, cwd=ROOT)
    venv.create(folder / "env", with_pip=True)
    pip = [str(folder / "env/bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    run(*pip, "--require-hashes", "-r", ROOT / "requirements/run.txt", cwd=folder)
    # Without an index: the pins must hold all that the wheels ask for.
    run(*pip, "--no-index", *sorted((folder / "dist").glob("*.whl")), cwd=folder)
    run(folder / "env/bin/python", "-m", "pip", "check", cwd=folder)
    return folder / "env/bin"


def test_the_install_is_small_and_without_torch(installed: Path) -> None:
    files = {path.stat().st_ino: path.stat().st_size for path in installed.parent.rglob("*") if path.is_file()}
    size_mb = sum(files.values()) / 1e6
    assert size_mb <= MAX_INSTALL_MB
    assert not list(installed.parent.glob("lib/python*/site-packages/torch"))


@pytest.mark.parametrize(
    "command",
    [
        "memdock",
        "memdock-conformance",
        "memdock-gateway",
        "memdock-pgvector",
        "memdock-embedder",
        "memdock-meter",
        "memdock-eval",
    ],
)
def test_a_command_starts(installed: Path, command: str, tmp_path: Path) -> None:
    assert "Usage" in run(installed / command, "--help", cwd=tmp_path)


def test_the_packaged_files_are_there(installed: Path, tmp_path: Path) -> None:
    flags = ["--baseline", "oracle", "--data", "own", "--language", "ru", "--dialogue", "0", "--out", "run"]
    run(installed / "memdock-eval", "run", *flags, cwd=tmp_path)
    assert (tmp_path / "run/report.html").stat().st_size > 10_000
    assert "up to date" in run(installed / "memdock-pgvector", "migrate", "--data", "data", cwd=tmp_path)
    run(installed / "memdock-gateway", "init", "gateway", cwd=tmp_path)
    assert "can be used" in run(
        installed / "memdock-gateway", "check", "--config", "gateway/gateway.yaml", cwd=tmp_path
    )


def test_the_wheel_can_write_a_new_adapter(installed: Path, tmp_path: Path) -> None:
    run(installed / "memdock-conformance", "scaffold", "wheel-memory", "--into", ".", cwd=tmp_path)
    assert (tmp_path / "wheel-memory/memdock_wheel_memory/system.py").is_file()
