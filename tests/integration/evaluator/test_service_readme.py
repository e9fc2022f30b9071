"""The steps of the service's README as they stand, but for the port."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import Daemon, clean_environment

ROOT = Path(__file__).parents[3]
README = (ROOT / "evaluator/memdock_evaluator/service/README.md").read_text()
SERVE, CALL = re.findall(r"<!-- tested -->\n```sh\n(.*?)```", README, re.DOTALL)


def test_the_steps_work_one_after_another(tmp_path: Path) -> None:
    command, *words = SERVE.split()
    server = Daemon(
        "server", command, [*words[:2], str(tmp_path / words[2]), *words[3:], "--listen", "127.0.0.1:0"], tmp_path
    )
    server.start()
    try:
        here = CALL.replace("127.0.0.1:7480", f"127.0.0.1:{server.ports()['http']}")
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", here],
            cwd=tmp_path,
            env=clean_environment({"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert '"state":"completed"' in done.stdout
        assert '"agrees":true' in done.stdout
        assert '<html lang="ru"' in (tmp_path / "report.ru.html").read_text()
        assert len((tmp_path / "outcomes.jsonl").read_text().splitlines()) == 228
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("field", ["language", "zone", "ingest-unit", "allow-failed-turns", "stop-after"])
def test_the_fields_that_it_names_are_taken(field: str) -> None:
    from memdock_evaluator.service.plans import TAKEN

    assert field in TAKEN
    assert f"`{field}`" in README
