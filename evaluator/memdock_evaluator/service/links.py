"""Links that open a report without a key, for some minutes: a browser sends no key with an address.

They are signed with a secret that lies at the results address, so that every replica knows the links of the others;
whoever could read the secret could read the reports beside it.
"""

import hmac
import secrets
import time
from hashlib import sha256

from memdock.errors import UnauthenticatedError
from memdock_evaluator.service.book import MARKS, RUN_ID
from memdock_evaluator.service.faults import ResultsUnreachableError
from memdock_evaluator.service.marks import Marks

LIFETIME_S = 600
_SECRET = f"{MARKS}/links.key"


class Links:
    """Makes and checks the signatures. Waits for the store."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._secret = b""

    def prepare(self) -> None:
        """Makes the secret where there is none, and reads it; raises `ResultsUnreachableError`."""
        self._marks.create(_SECRET, secrets.token_hex(32).encode())
        self._read()

    def still_there(self) -> bool:
        """Whether the results address answers, and is the one that it was."""
        return self._marks.read(_SECRET) == self._read()

    def sign(self, tenant: str, run_id: str) -> tuple[str, int]:
        """A ticket for a run's report, and the second of its end since 1970."""
        expires = int(time.time()) + LIFETIME_S
        return f"{tenant}:{expires}:{self._mac(tenant, run_id, expires)}", expires

    def tenant(self, ticket: str, run_id: str) -> str:
        """Whose the report is; raises CREDENTIAL_INVALID or CREDENTIAL_EXPIRED."""
        tenant, _, rest = ticket.partition(":")
        written, _, mac = rest.partition(":")
        expires = int(written) if written.isdecimal() and written.isascii() and len(written) < 12 else 0
        good = hmac.compare_digest(self._mac(tenant, run_id, expires).encode(), mac.encode(errors="replace"))
        if not (good and RUN_ID.fullmatch(run_id)):
            raise UnauthenticatedError("CREDENTIAL_INVALID", "the link is not one of this server's")
        if expires < time.time():
            raise UnauthenticatedError("CREDENTIAL_EXPIRED", "the link has expired; open the report again")
        return tenant

    def _mac(self, tenant: str, run_id: str, expires: int) -> str:
        words = f"report\0{tenant}\0{run_id}\0{expires}".encode(errors="replace")
        return hmac.new(self._read(), words, sha256).hexdigest()

    def _read(self) -> bytes:
        if not self._secret:
            self._secret = self._marks.read(_SECRET) or b""
            if not self._secret:
                raise ResultsUnreachableError
        return self._secret
