"""`python adapters/environment.py NAME ...`: builds adapters' environments where they are missing, prints the folders.

Each framework has an environment of its own, since their pins exclude each other. It is kept in `.adapters/` (or in
`$MEMDOCK_ENVIRONMENTS`) by a digest of its pins: what is pinned the same is never built twice.

A framework that is on no package index has its repository and commit in `source.txt`, beside the requirements; git
holds what it gives to the commit. `$MEMDOCK_NAME_SOURCE` (as `MEMDOCK_CORTEX_SOURCE`) has it from a clone or another
address; where it cannot be had, the command says what to do and ends with 69. `--source FOLDER` only fetches it.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY = ".ready"
SOURCE_AWAY = 69
"""The exit code where a repository cannot be had (`EX_UNAVAILABLE` of sysexits.h)."""
_FETCH_S = 120


def pins(name: str) -> list[Path]:
    """The requirement files of an adapter; raises `SystemExit` where there is no such adapter."""
    known = {path.parent.name: path for path in sorted((ROOT / "adapters").glob("*/requirements.txt"))}
    if name not in known:
        raise SystemExit(f"there is no adapter {name!r} with an environment of its own: known are {', '.join(known)}")
    return [known[name], ROOT / "requirements" / "build.txt"]


def source(name: str) -> Path | None:
    """The file that pins a repository's commit; `None` for what a package index has."""
    path = ROOT / "adapters" / name / "source.txt"
    return path if path.is_file() else None


def folder_of(name: str) -> Path:
    """Where the adapter's environment is, or would be."""
    pinned = [*pins(name), *filter(None, [source(name)])]
    known = [sys.version.encode(), str(ROOT).encode(), *(path.read_bytes() for path in pinned)]
    home = Path(os.environ.get("MEMDOCK_ENVIRONMENTS") or ROOT / ".adapters").absolute()
    return home / f"{name}-{hashlib.sha256(b''.join(known)).hexdigest()[:12]}"


def environment(name: str) -> Path:
    """The folder of the adapter's environment, built where it is missing. Two that build at once build it once."""
    folder = folder_of(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / READY).exists():
            shutil.rmtree(folder, ignore_errors=True)  # what a killed build has left
            _build(folder, name, pins(name))
            (folder / READY).touch()
    return folder


def _build(folder: Path, name: str, files: list[Path]) -> None:
    print(f"building the environment of {name} ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as clone:
        pin = source(name)
        fetched = [] if pin is None else [_fetch(name, pin.read_text().strip(), Path(clone))]
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        pinned = [word for path in files for word in ("-r", str(path))]
        subprocess.run([*pip, "--require-hashes", "--no-deps", *pinned], check=True, stdout=sys.stderr)  # noqa: S603 - pip
        own = [word for path in (ROOT / "proto", ROOT / "adapters" / name) for word in ("-e", str(path))]
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", *fetched, *own], check=True, stdout=sys.stderr)  # noqa: S603


def _fetch(name: str, pin: str, clone: Path) -> str:
    """Checks the pinned commit out in the folder `clone`, which pip installs; git holds the files to its digest."""
    found = re.fullmatch(r"git\+(\S+)@([0-9a-f]{40})", pin)
    if found is None:
        raise SystemExit(f"source.txt of {name}: expected git+ADDRESS@COMMIT, the commit in 40 digits")
    address, commit = found.groups()
    variable = f"MEMDOCK_{name.upper().replace('-', '_')}_SOURCE"
    address = os.environ.get(variable) or address
    if Path(address).exists():
        address = str(Path(address).resolve())
    git = ["git", "-C", str(clone)]
    asks_nobody = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        subprocess.run([*git, "init", "--quiet"], check=True)  # noqa: S603 - git
        fetch = [*git, "fetch", "--quiet", "--depth", "1", address, commit]
        subprocess.run(fetch, check=True, env=asks_nobody, timeout=_FETCH_S)  # noqa: S603
        subprocess.run([*git, "checkout", "--quiet", commit], check=True)  # noqa: S603
    except (FileNotFoundError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as fault:
        print(
            f"the source of {name} cannot be had from {address} ({type(fault).__name__}): set {variable} to a clone of "
            f"its repository that has the commit {commit}, and run this again",
            file=sys.stderr,
        )
        raise SystemExit(SOURCE_AWAY) from None
    return str(clone)


def _put_source(name: str, folder: Path) -> Path:
    """A clone that holds the pinned commit, in a new folder, whole or not at all."""
    pin = source(name)
    if pin is None:
        raise SystemExit(f"{name} has no source.txt: its framework is on a package index")
    if folder.exists():
        raise SystemExit(f"{folder} is there already; nothing was fetched")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
        clone = Path(partial) / "clone"
        clone.mkdir()
        _fetch(name, pin.read_text().strip(), clone)
        clone.rename(folder)
    return folder


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Build environments of adapters, and print their folders.")
    parser.add_argument("names", metavar="NAME", nargs="+", help="an adapter's folder in adapters/")
    parser.add_argument("--built", action="store_true", help="build nothing: exit code 1 where one is missing")
    parser.add_argument(
        "--source", type=Path, metavar="FOLDER", help="build nothing: fetch what source.txt pins into a new folder"
    )
    given = parser.parse_args()
    folders = [folder_of(name) for name in given.names]
    if given.source is not None and len(folders) > 1:
        parser.error("--source takes one NAME")
    if given.source is None and given.built and not all((folder / READY).exists() for folder in folders):
        raise SystemExit(1)
    try:
        if given.source is not None:
            print(_put_source(given.names[0], given.source))
            return
        for name in given.names:
            print(environment(name), flush=True)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"the environment could not be built (pip ended with {error.returncode})") from None
    except OSError as error:
        home = given.source or folders[0].parent
        raise SystemExit(f"nothing could be put into {home}: {error}") from None


if __name__ == "__main__":
    main()
