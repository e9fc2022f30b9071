"""A PostgreSQL elsewhere that can be taken away: `python -m support.postgres_switch up|down FOLDER`."""

import sys
from pathlib import Path

from memdock.adapter.postgres import EmbeddedPostgres


def main() -> None:
    """Stops or starts the server of the folder, and leaves it so."""
    word, folder = sys.argv[1:]
    server = EmbeddedPostgres(Path(folder))
    if word == "down":
        server._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(server._data))
    else:
        server._start()


if __name__ == "__main__":
    main()
