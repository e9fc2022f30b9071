"""The small system as a process: its ledger is durable and its memories are not, so a kill shows."""

import argparse
from pathlib import Path

from memdock.server import ServeOptions, run, serve
from memdock.sqlite_ledger import SqliteLedger
from support.remembering import Remembering


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser()
    for name in ("--data", "--model", "--grpc", "--http"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    folder = Path(options.data)
    folder.mkdir(exist_ok=True)
    ledger = SqliteLedger(folder / "ledger.db")
    run(serve(Remembering(options.model), ledger, ServeOptions(grpc=options.grpc, http=options.http)))


if __name__ == "__main__":
    main()
