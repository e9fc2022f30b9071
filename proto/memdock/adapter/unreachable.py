"""The error of a PostgreSQL that is away, whoever runs it."""

from memdock.errors import UnavailableError


def unreachable(reason: str) -> UnavailableError:
    """STORE_UNREACHABLE, to be tried again in a second."""
    return UnavailableError("STORE_UNREACHABLE", f"PostgreSQL cannot be used now: {reason}.", retry_after_s=1.0)
