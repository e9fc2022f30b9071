"""The head of a request that takes its time."""

import asyncio
import time

import pytest

from memdock import http_server
from support.faces import ScriptedService, faces_of

HEAD = b"GET /livez HTTP/1.1\r\nhost: x\r\n"


async def test_a_head_that_drips_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.3)
    async with faces_of(ScriptedService()) as faces:
        reader, writer = await asyncio.open_connection("127.0.0.1", faces.http_port)
        writer.write(HEAD + b"x-slow: ")
        dripping = asyncio.create_task(_drip(writer))
        answer = await reader.read()
        dripping.cancel()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"did not come within" in answer


async def _drip(writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        writer.write(b"y")
        await asyncio.sleep(0.02)


async def test_a_connection_without_a_request_is_closed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.3)
    async with faces_of(ScriptedService()) as faces:
        reader, writer = await asyncio.open_connection("127.0.0.1", faces.http_port)
        assert await reader.read() == b""
        writer.close()


async def test_the_time_counts_from_the_first_byte_of_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.3)
    async with faces_of(ScriptedService()) as faces:
        reader, writer = await asyncio.open_connection("127.0.0.1", faces.http_port)
        until = time.monotonic() + 1.0
        answered = 0
        while time.monotonic() < until:  # longer than one head may take
            writer.write(HEAD + b"\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            answered += 1
            await asyncio.sleep(0.1)
            reader._buffer.clear()  # type: ignore[attr-defined]  # the body
        writer.close()
    assert answered > 4
