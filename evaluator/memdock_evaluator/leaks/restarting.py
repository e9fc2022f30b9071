"""The user's command that restarts what is tested."""

import asyncio
from collections.abc import Sequence

from memdock_evaluator.faults import RunStoppedError

_SHOWN = 200


async def restart(command: Sequence[str], timeout_s: float) -> None:
    """Runs it to its end; raises `RunStoppedError` where it cannot be started, fails, or takes too long.

    Its input is empty, its output is kept for the error alone. Cancelled or late, it is killed.
    """
    shown = " ".join(command)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise RunStoppedError(f"--restart-command {shown!r} cannot be started ({error.strerror})") from error
    try:
        async with asyncio.timeout(timeout_s):
            _, said = await process.communicate()
    except TimeoutError as error:
        raise RunStoppedError(f"--restart-command {shown!r} did not end within {timeout_s:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines() or ["it does not say why"]
        raise RunStoppedError(f"--restart-command {shown!r} ended with {process.returncode}: {lines[-1][:_SHOWN]}")
