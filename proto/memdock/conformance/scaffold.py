"""`memdock-conformance scaffold NAME`: the folder of a new adapter, whose server starts and passes the core at once."""

import importlib.util
import re
import shutil
import tempfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_NAME = 40
_SUFFIX = ".tmpl"
_SHARED_PINS = "protocol.in"
"""What adapters of a clone share beside a framework, in the folder above theirs."""
_PINS = "memdock[http,reflection]"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name")
@click.option(
    "--into",
    default=Path("adapters"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="The folder that the new one is to stand in.",
)
def scaffold_command(name: str, into: Path) -> None:
    """Write the folder of a new adapter in Python, NAME, which passes the core of this suite at once."""
    try:
        folder = scaffold(name, into)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from None
    except OSError as problem:
        raise click.ClickException(f"{into}: {problem.strerror}") from None
    click.echo(
        f"{folder} is written. Start it:\n"
        f"  pip install -e {folder}\n"
        f"  memdock-{name} serve --grpc 127.0.0.1:7470 --http 127.0.0.1:7471\n"
        "  memdock-conformance grpc://127.0.0.1:7470 http://127.0.0.1:7471 --core\n"
        f"Then put your system into {folder / _module(name) / 'system.py'}; its README says what is there."
    )


def scaffold(name: str, into: Path) -> Path:
    """Writes `into`/`name`, whole or not at all, and gives its path.

    Raises `ValueError` for a bad name and for a folder that is there, `OSError` where `into` cannot be written.
    """
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise ValueError(f"NAME must be at most {_MAX_NAME} small letters and digits, a letter first, with single -")
    folder = into / name
    if folder.exists() or folder.is_symlink():
        raise ValueError(f"{folder} exists already; give another NAME, or take it away first")
    if importlib.util.find_spec(_module(name)) is not None:
        raise ValueError(f"there is a package {_module(name)} already; give another NAME")
    words = {
        "name": name,
        "module": _module(name),
        "class": "".join(part.capitalize() for part in name.split("-")),
        "requirements": f"-r ../{_SHARED_PINS}" if (into / _SHARED_PINS).is_file() else _PINS,
    }
    with tempfile.TemporaryDirectory(dir=into, prefix=f".{name}-") as part:
        whole = Path(part) / name
        _copy(files("memdock.conformance") / "template", whole, words)
        shutil.move(whole, folder)
    return folder


def _module(name: str) -> str:
    return f"memdock_{name.replace('-', '_')}"


def _copy(template: Traversable, target: Path, words: dict[str, str]) -> None:
    target.mkdir()
    for item in template.iterdir():
        if item.is_dir():
            _copy(item, target / (words["module"] if item.name == "package" else item.name), words)
        elif item.name.endswith(_SUFFIX):
            text = item.read_text(encoding="utf-8")
            for word, value in words.items():
                text = text.replace(f"{{{{{word}}}}}", value)
            (target / item.name.removesuffix(_SUFFIX)).write_text(text, encoding="utf-8")
