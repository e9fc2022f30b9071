"""A gRPC server whose end nobody sees as CANCELLED."""

import asyncio
import os
import socket
import stat
from collections.abc import Set
from contextlib import suppress

import grpc.aio


class GrpcServer:
    """A server that is bound to `port`; `answering` holds the tasks of the calls that are not answered yet."""

    def __init__(self, server: grpc.aio.Server, port: int, answering: Set[asyncio.Task[None]]) -> None:
        self._server = server
        self._port = port
        self._answering = answering

    async def start(self) -> None:
        """Returns when calls are taken."""
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Waits at most `grace_s` for the answers to the calls inside, then closes the port and the connections.

        gRPC's own stop ends what comes in while it stops as CANCELLED, which tells callers that they did it themselves
        and that there is nothing to try again. A closed connection is UNAVAILABLE to them, so connections are closed
        first.
        """
        if self._answering and grace_s:
            await asyncio.wait(set(self._answering), timeout=grace_s)
        _hang_up(self._port)
        await self._server.stop(None)


def _hang_up(port: int) -> None:
    """Shuts down this process's sockets at a port, those that listen first. gRPC neither does it nor tells which."""
    for listening in (True, False):
        for descriptor in map(int, os.listdir("/dev/fd")):
            with suppress(OSError):  # it was closed meanwhile, by us or by the caller
                _shut_down(descriptor, port, listening=listening)


def _shut_down(descriptor: int, port: int, *, listening: bool) -> None:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return
    with socket.socket(fileno=os.dup(descriptor)) as one:
        at_port = one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == port
        if at_port and listening == one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            one.shutdown(socket.SHUT_RDWR)
