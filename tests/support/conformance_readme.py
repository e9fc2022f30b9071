"""The table of checks in the suite's README: `python -m support.conformance_readme` writes it anew."""

from pathlib import Path

from memdock.conformance.catalogue import markdown

README = Path(__file__).parents[2] / "proto/memdock/conformance/README.md"
BEGIN, END = "<!-- cases -->\n", "<!-- /cases -->\n"


def with_table(text: str) -> str:
    """The README with the table as the cases have it now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    assert tail, "the marks of the table are gone"
    return f"{head}{BEGIN}{markdown()}{END}{tail}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
