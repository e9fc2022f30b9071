"""`python -m memdock.conformance` is `memdock-conformance`."""

from memdock.conformance.cli import main

if __name__ == "__main__":
    main()
