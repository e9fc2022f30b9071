"""The start of `memdock-conformance`, also as `python -m memdock.conformance`."""

import sys


def main() -> None:
    """Runs the command; without the extra it says what is missing."""
    try:
        from memdock.conformance.cli import main as run
    except ModuleNotFoundError as missing:
        name = (missing.name or "").partition(".")[0]
        if name not in ("aiohttp", "rich"):
            raise
        sys.stderr.write(f'memdock-conformance needs {name}: pip install "memdock[conformance]"\n')
        sys.exit(3)
    run()


if __name__ == "__main__":
    main()
