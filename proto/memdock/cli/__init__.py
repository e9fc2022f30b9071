"""The command `memdock`."""

from memdock.cli.app import main

__all__ = ["main"]
