"""The folder of a run as it begins and ends: whose it is, that only one process writes it, what the manifest says."""

import platform
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version

from memdock_evaluator.locking import locked
from memdock_evaluator.results.finalise import MANIFEST, holds_something_else
from memdock_evaluator.results.folder import Folder, FolderError, FolderHeldError
from memdock_evaluator.results.lease import leased
from memdock_evaluator.results.manifest import Compared, Manifest, ManifestError
from memdock_evaluator.results.plan import Plan, differences

_LOCK = ".lock"
_ID_BYTES = 5
_DISTS = ("memdock", "memdock-evaluator")


@contextmanager
def held(folder: Folder, say: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Keeps a second process out of a folder as long as the block runs; raises `FolderHeldError` where one is in it.

    By a lock of this machine's disk, elsewhere by a lease; `say` gets a sentence where one must be waited for.
    """
    path = folder.local_path
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path / _LOCK) if path is not None else leased(folder, say))
        except BlockingIOError as error:
            said = f"another run is writing to {folder.address}: wait for it, or give another --out"
            raise FolderHeldError(said) from error
        except OSError as error:
            raise FolderError(f"{folder.address} cannot be written to ({error.strerror})") from error
        yield


def earlier(folder: Folder, plan: Plan) -> Manifest | None:
    """The manifest of the run that the folder holds, if any.

    Raises `ManifestError` for a folder of another plan, naming the fields that differ, and for one of something else.
    """
    content = folder.read(MANIFEST)
    if content is None:
        if holds_something_else(folder):
            raise ManifestError(
                f"--out {folder.address} holds something else than a run: give an empty folder or a new one"
            )
        return None
    manifest = Manifest.from_json(content, place=f"{folder.address}/{MANIFEST}")
    if found := differences(manifest.plan, plan):
        listed = "\n  ".join(found)
        raise ManifestError(
            f"{folder.address} holds a run of another configuration. It differs in\n  {listed}\n"
            "Give another --out, or run what that folder was begun with."
        )
    return manifest


def begin(folder: Folder, plan: Plan, command: tuple[str, ...], compared: Compared) -> Manifest:
    """Writes the manifest of a new run."""
    manifest = Manifest(
        run_id=new_id(),
        started=now(),
        command=command,
        versions={"python": platform.python_version(), **{name: version(name) for name in _DISTS}},
        plan=plan,
        compared=compared,
    )
    folder.write(MANIFEST, manifest.to_json())
    return manifest


def new_id() -> str:
    """A run's id, of hexadecimal digits."""
    return secrets.token_hex(_ID_BYTES)


def now() -> datetime:
    """The time of day in whole seconds of UTC."""
    return datetime.now(UTC).replace(microsecond=0)
