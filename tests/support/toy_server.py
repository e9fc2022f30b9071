"""The durable toy as a process of its own: `python -m support.toy_server FOLDER`, told apart by its options."""

import argparse
from pathlib import Path

from memdock.server import ServeOptions, run, serve
from memdock.sqlite_ledger import SqliteLedger
from support.toys import DurableToy


def main() -> None:
    """Serves until it is told to end, or killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--grpc", default="127.0.0.1:0")
    parser.add_argument("--http", default="127.0.0.1:0")
    parser.add_argument("--step-s", type=float, default=0.001)
    parser.add_argument("--read-s", type=float, default=0.0)
    parser.add_argument("--fail-percent", type=int, default=0)
    parser.add_argument("--drain-s", type=float, default=10.0)
    options = parser.parse_args()
    system = DurableToy(
        options.folder / "store.db",
        step_s=options.step_s,
        read_s=options.read_s,
        fail_percent=options.fail_percent,
    )
    ledger = SqliteLedger(options.folder / "ledger.db")
    ports = options.folder / "ports.json"
    run(
        serve(
            system,
            ledger,
            ServeOptions(
                grpc=options.grpc, http=options.http, port_file=ports, drain_s=options.drain_s, batch_turns=16
            ),
        )
    )


if __name__ == "__main__":
    main()
