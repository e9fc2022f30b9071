"""What an endpoint's error says: by its status, its code and its words."""

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from memdock_evaluator.words import cut

_MAY_PASS = {408, 409, 425, 429}
_OVERLOAD = {429, 503, 529}
_TOO_LONG = re.compile(r"context.?length|maximum context|context window|too (long|many tokens)", re.IGNORECASE)
_FILTERED = re.compile(r"content.?(filter|policy)|moderation|safety", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer with an error's status. `code`: the endpoint's own, `said`: its words, on one bearable line."""

    status: int
    code: str = ""
    said: str

    @property
    def stops_run(self) -> bool:
        """Whether no other request can pass, either."""
        return self.status in (401, 403, 404) or self.code == "insufficient_quota"

    def sentence(self, key: str) -> str:
        """For the user, of one that stops the run; `key`: the variable that holds the key."""
        if self.status in (401, 403):
            return f"refuses the key ({self.status}): check {key}"
        if self.status == 404:
            return f"was not found (404): check the address and the model's name ({self.said})"
        return f"has no quota left: {self.said}"

    @property
    def is_too_long(self) -> bool:
        """Whether the prompt does not fit the model."""
        return self.status == 413 or (self.status == 400 and bool(_TOO_LONG.search(f"{self.code} {self.said}")))

    @property
    def is_filter(self) -> bool:
        """Whether the provider declines what was asked."""
        return self.status == 400 and bool(_FILTERED.search(f"{self.code} {self.said}"))

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.status in _MAY_PASS or self.status >= 500

    @property
    def is_overload(self) -> bool:
        """Whether fewer requests at once would help."""
        return self.status in _OVERLOAD


def read_refusal(status: int, content: bytes) -> Refusal:
    """Errors are `{"error": {"code", "message"}}`, or without the outer object, or any text."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return Refusal(status=status, said=cut(content.decode(errors="replace")) or "without a word")
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Refusal(status=status, said=cut(str(error)))
    code, message = error.get("code"), error.get("message")
    words = message if isinstance(message, str) and message.strip() else json.dumps(body)
    return Refusal(status=status, code=code if isinstance(code, str) else "", said=cut(words))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date of HTTP.

    `None` where it asks for none, or for what is no wait: no number, a negative one, one without end. A date that is
    past is 0. `headers` ignore case.
    """
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            wait_s = float(headers[name]) / divisor
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait_s) and wait_s >= 0:
            return wait_s
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError, OverflowError, OSError):
        return None
