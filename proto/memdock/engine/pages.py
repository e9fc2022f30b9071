"""Page tokens: opaque to clients, bound to the list and the space that they were given for."""

import base64
import binascii
import hashlib

from memdock.findings import refuse

_SEAL_BYTES = 8


def write_token(listing: str, space: str, cursor: str) -> str:
    """A token that goes on after `cursor`."""
    body = cursor.encode()
    return base64.urlsafe_b64encode(_seal(listing, space, body) + body).decode().rstrip("=")


def read_token(listing: str, space: str, token: str) -> str:
    """The cursor in a token; empty for the first page. Any other text than a token of this list is BAD_PAGE_TOKEN."""
    if not token:
        return ""
    try:
        sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _bad_token() from None
    seal, body = sealed[:_SEAL_BYTES], sealed[_SEAL_BYTES:]
    if not body or seal != _seal(listing, space, body):
        raise _bad_token()
    return body.decode()


def _seal(listing: str, space: str, body: bytes) -> bytes:
    # It guards against mistakes, not against forgery: a forged cursor reads nothing but the caller's own space.
    return hashlib.blake2b(f"{listing}\0{space}\0".encode() + body, digest_size=_SEAL_BYTES).digest()


def _bad_token() -> Exception:
    return refuse("BAD_PAGE_TOKEN", "page_token", "must be the next_page_token of the answer before")
