"""Where a model is and how it is asked; apart from the client, whose package takes a second to import."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """Where a model is. `purpose`: "answer" or "judge", and in capitals the name in `MEMDOCK_EVAL_..._KEY`.

    A call is tried up to `tries` times, each for `timeout_s`; `concurrency` calls at once.
    """

    purpose: str
    url: str
    model: str
    key: str = field(default="", repr=False)
    timeout_s: float = 120.0
    tries: int = 4
    concurrency: int = 8

    @property
    def host(self) -> str:
        """The address without a path, for people and the manifest."""
        return urlsplit(self.url).netloc

    @property
    def label(self) -> str:
        """How errors call it."""
        return f"the {self.purpose} model {self.model} at {self.host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """An answerer or a judge: the offline one where there is no endpoint.

    `prompt` and `rubric` are files of the user's in place of the bundled ones, for every language; "" : bundled.
    `form` is the judge's, "json" or "pollux".
    """

    endpoint: ModelEndpoint | None = None
    prompt: str = ""
    rubric: str = ""
    form: str = "json"
