"""Any id as a name that file systems and the protocol take: readable, and never the same for two ids."""

import hashlib
import re

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9._-]")
_KEPT = 32


def safe_name(name: str) -> str:
    """`name` itself where it is 1-48 of `[A-Za-z0-9._-]`, a letter or digit first.

    Else its beginning with every other character as "_", then "~" and 12 hexadecimal digits of its SHA-256, so that
    "a/b" and "a_b" stay apart. At most 46 characters.
    """
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"x{_FORBIDDEN.sub('_', name[:_KEPT])}~{digest}"
