"""What a Russian page still says in English."""

import re
from html.parser import HTMLParser

NAMES = (
    *(
        "Memdock",
        "memdock-evaluator",
        "memdock-eval run --prices",
        "memdock-eval run --docker",
        "English",
        "RUMBA",
        "RAG",
        "arXiv",
        "Table 5",
    ),
    *("rag-dense", "rag-hybrid", "full-context", "oracle", "refusal", "gpt-4.1-mini", "pollux-judge-7b", "pollux"),
    *("openai", "offline-extractive", "offline-overlap", "offline", "MRR", "nDCG", "DeleteInfo", "accuracy", "SHA-256"),
    *(
        "UTC",
        "USD",
        "UTF-8",
        "Enter",
        "Escape",
        "Retrieve",
        "python",
        "Searle, Casella and McCulloch",
        "Durkalski et al. 2003",
    ),
)
"""Names of systems, models, measures, keys and people, which stay as they are."""

_SILENT = {"script", "style", "code", "noscript"}
_SPOKEN = ("aria-label", "title", "placeholder", "alt")
_VOID = {"meta", "link", "input", "br", "wbr", "img", "hr"}


class _Visible(HTMLParser):
    """Texts and spoken attributes outside of code and of elements in another language."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._muted: list[bool] = [False]
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        muted = self._muted[-1] or tag in _SILENT or given.get("lang", "ru") != "ru"
        if not muted:
            self.found += [given[name] or "" for name in _SPOKEN if name in given]
        if tag not in _VOID:
            self._muted.append(muted)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A drawing's element, which holds no text."""

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self._muted.pop()

    def handle_data(self, data: str) -> None:
        if not self._muted[-1] and data.strip():
            self.found.append(" ".join(data.split()))


def english_left(html: str, *names: str) -> list[str]:
    """The texts of a Russian page that have a word of three Latin letters or more outside of `NAMES` and `names`."""
    known = re.compile("|".join(re.escape(name) for name in sorted((*NAMES, *names), key=len, reverse=True)))
    return [text for text in _Visible(html).found if re.search(r"[A-Za-z]{3,}", known.sub("", text))]
