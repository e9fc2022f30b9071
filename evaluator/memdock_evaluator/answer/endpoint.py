"""Where a model is and how it is asked; apart from the client, whose package takes a second to import."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """Where a model is. `purpose`: "answer" or "judge", and in capitals the name in `MEMDOCK_EVAL_..._KEY`.

    A call is tried up to `tries` times, each for `timeout_s`; at most `concurrency` calls at once.
    """

    purpose: str
    url: str
    model: str
    key: str = field(default="", repr=False)
    temperature: float = 0.0
    timeout_s: float = 120.0
    tries: int = 4
    concurrency: int = 16

    @property
    def host(self) -> str:
        """The address without a path, for people and the manifest."""
        return urlsplit(self.url).netloc

    @property
    def path(self) -> str:
        """What stands behind the host in the address, for the manifest."""
        return urlsplit(self.url).path.rstrip("/")

    @property
    def label(self) -> str:
        """How errors call it."""
        return f"the {self.purpose} model {self.model} at {self.host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """An answerer or a judge: the offline one where there is no endpoint.

    `prompt` and `rubric` are files of the user's in place of the bundled ones, "" : bundled; `{lang}` in a path stands
    for the language's code, a path without it serves every language. `form` is the judge's, "json" or "pollux", and
    `verdict_tries` how often it is asked where its reply holds no verdict. `seed`: `None` for that of the run.
    """

    endpoint: ModelEndpoint | None = None
    prompt: str = ""
    rubric: str = ""
    form: str = "json"
    seed: int | None = None
    verdict_tries: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedJudge:
    """A judge of several. Of each language, the first that serves it is primary; `languages` empty: it serves all."""

    name: str
    languages: tuple[str, ...] = ()
    settings: ModelSettings

    def serves(self, language: str) -> bool:
        """Whether it judges answers in this language."""
        return not self.languages or language in self.languages
